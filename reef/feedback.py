"""Observed traffic as recipes see it: exchanges, reports and the batch units made of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

Message = dict[str, Any]
"""A chat message: `{"role": "system" | "user" | "assistant" | "tool", "content": str, ...}`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider reported them; None where it did not say. `cost` is in US dollars."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One inference record, in one neutral form whatever dialect it came in.

    `messages` are the request's own (nothing that Reef put in front), `answer` the text of the reply.
    """

    receipt: str
    scenario: str
    created_at: datetime
    model: str | None
    release_id: str | None
    content_id: str | None
    messages: tuple[Message, ...]
    answer: str
    usage: Usage = Usage()

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return text_of(message.get("content"))
        return ""


@dataclass(frozen=True, slots=True)
class Report:
    """Feedback about receipts, as it was stored."""

    id: str
    scenario: str
    created_at: datetime
    score: float | None
    feedback: str | Mapping[str, Any] | None
    references: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    preferred: str | None = None
    over: str | None = None

    @property
    def text(self) -> str:
        """The feedback in the user's words, or an empty string.

        Control characters (a terminal's colours among them), which no rule may hold, are left out.
        """
        if isinstance(self.feedback, str):
            return _words(self.feedback)
        if isinstance(self.feedback, Mapping):
            for key in ("text", "comment", "feedback", "message"):
                if isinstance(value := self.feedback.get(key), str):
                    return _words(value)
        return ""

    @property
    def correction(self) -> str | None:
        """The answer that would have been right, if the report carries it."""
        value = self.feedback.get("correction") if isinstance(self.feedback, Mapping) else None
        return _words(value) or None if isinstance(value, str) else None


def _words(text: str) -> str:
    """`text` as a person reads it: without the escape codes of terminals and other control characters."""
    return _CONTROL.sub("", _ESCAPES.sub("", text)).strip()


@dataclass(frozen=True, slots=True)
class BatchUnit:
    """One report with its eligible exchanges."""

    report: Report
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a recipe says of one (report, receipt) pair.

    `train`: it may enter a batch. `wait`: not yet. `never`: it teaches nothing, and `reason` says why
    (a word of the protocol, or the recipe's own `x:<word>`); `message` is a sentence for people.
    """

    decision: Literal["train", "wait", "never"]
    reason: str = ""
    message: str = ""


def text_of(content: Any) -> str:
    """The plain text of a message's content, whether a string or a list of typed parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part if isinstance(part, str) else part.get("text", "") for part in content if part)
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    return ""
