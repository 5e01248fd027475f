"""What a release's commit says: a plan that gives the same id each time, and its message."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

_BREAKS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
_TRAILER_LIMIT = 400
_SUMMARY_LIMIT = 100


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """All that decides a commit's id. `recorded_at` (with a time zone) becomes both of its dates."""

    scenario: str
    content_id: str
    parent: str | None
    message: str
    recorded_at: datetime


def commit_message(
    summary: str,
    body: str = "",
    *,
    scenario: str,
    step: int,
    operation: str,
    recipe: str,
    score: str | None = None,
    evidence: Sequence[str] = (),
) -> str:
    """A message for people that ends in git trailers. Trailer values are made one line each.

    `evidence` gives one `Reef-Evidence` line per item.
    """
    trailers = [
        ("Scenario", scenario),
        ("Step", str(step)),
        ("Operation", operation),
        ("Recipe", recipe),
        *([("Score", score)] if score else []),
        *(("Evidence", item) for item in evidence),
    ]
    lines = [f"Reef-{name}: {one_line(value, _TRAILER_LIMIT)}" for name, value in trailers if value]
    paragraphs = [one_line(summary, _SUMMARY_LIMIT) or operation, _body(body), "\n".join(lines)]
    return "\n\n".join(part for part in paragraphs if part) + "\n"


def one_line(text: str, limit: int) -> str:
    """`text` with every line break and control character made a space, cut to `limit` characters."""
    flat = " ".join(_BREAKS.sub(" ", text).split())
    return flat if len(flat) <= limit else flat[: limit - 3].rstrip() + "..."


def _body(text: str) -> str:
    """The text without control characters; a line that looks like one of our trailers is indented."""
    lines = (_BREAKS.sub(" ", line).rstrip() for line in text.strip().splitlines())
    return "\n".join(f" {line}" if line.lower().startswith("reef-") else line for line in lines)
