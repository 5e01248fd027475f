"""Texts that may not be in a tree: credentials, attempts to override instructions, gate answers."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from daemon.harness.text import comparable
from daemon.scrub import find_credential
from reef.errors import Refused
from reef.tree import Entry

_WHAT = r"(?:instructions?|prompts?|rules?|messages?|directions?|guidelines?|directives?|commands?|context)"
_WHICH = (
    r"(?:previous|prior|above|earlier|preceding|former|foregoing|existing|original|system|developer|initial)"
)
_DROP = r"(?:ignore|disregard|forget|override|bypass|overrule|discard)"
_DIRECTIVE = re.compile(
    rf"""(?ix)
    \b{_DROP}\s+(?:(?:all|any|every|everything|each|of|the|your|my|these|those|other|and)\s+){{0,4}}
        {_WHICH}(?:\s+(?:and|or|,)?\s*{_WHICH})*\s+{_WHAT}
    | \b{_DROP}\s+(?:all|every|your)\s+(?:of\s+)?(?:the\s+|your\s+)?(?:instructions|prompts|rules|guidelines)
    | \b{_DROP}\s+(?:everything|all|anything)\s+(?:that\s+(?:was|came|is)\s+)?
        (?:above|before|so\s+far|you\s+(?:were|have\s+been|know))
    | \b(?:do\s+not|don't|never|stop)\s+(?:follow|obey|heed)(?:ing)?\s+
        (?:(?:any|the|your|all)\s+)*{_WHICH}\s+{_WHAT}
    | \bnew\s+system\s+(?:prompt|instructions?)\s*:
    | \b(?:you\s+are|act|behave|respond)\s+(?:now\s+)?(?:as\s+)?
        (?:if\s+you\s+(?:have|had)\s+no|without\s+any)\s+(?:restrictions?|limits?|limitations?|{_WHAT})
    | \byou\s+are\s+now\s+(?:in\s+)?(?:developer\s+mode|jailbroken|unrestricted|dan\b)
    | \b(?:reveal|print|repeat|show|output|leak)\s+(?:me\s+)?(?:your|the)\s+
        (?:(?:hidden|full|secret)\s+)*system\s+prompt
    """
)
_TEMPLATE_TOKEN = re.compile(
    r"<\|[A-Za-z0-9_ -]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>"
    r"|<\uff5c[^\uff5c]{1,40}\uff5c>|\[/?(?:AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT)\]"
)
_SHOWN = 60


def find_directive(text: str) -> str | None:
    """The phrase in `text` that tries to override instructions or to pose as a chat template, or None."""
    match = _TEMPLATE_TOKEN.search(text) or _DIRECTIVE.search(text)
    return match[0][:_SHOWN] if match else None


def texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def scan_entry(entry: Entry, leak_texts: Sequence[str] = ()) -> list[Refused]:
    """Why the texts of an entry are refused: rules `credential`, `directive` and `gate-leak`.

    `leak_texts` are whole prompts and answers of gate tasks; they are compared as words.
    """
    found: list[Refused] = []
    whole = "\n".join(texts(dict(entry.config)))
    if kind := find_credential(whole):
        found.append(
            Refused(
                "credential",
                f"entry `{entry.id}` holds what looks like {kind}",
                hint="take the secret out; an agent reads secrets from its own environment",
            )
        )
    if phrase := find_directive(whole):
        found.append(
            Refused(
                "directive", f"entry `{entry.id}` holds the phrase `{phrase}`", hint="say it in other words"
            )
        )
    padded = f" {comparable(whole)} "
    if any(words and f" {words} " in padded for words in map(comparable, leak_texts)):
        found.append(
            Refused(
                "gate-leak",
                f"entry `{entry.id}` holds a prompt or an answer of a gate task",
                hint="a candidate must not know what it is measured with; learn from other exchanges",
            )
        )
    return found


def scan_text(text: str) -> list[Refused]:
    """Why a text from outside (an instruction) is refused: rules `credential` and `directive`."""
    return scan_entry(Entry("text", "rules", {"text": text}))
