"""Revisions: how people name a release inside one scenario, and finding the full id they mean.

Reef resolves them itself and hands git full ids only.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from daemon.releases.refs import check_tag
from reef.errors import Invalid, NotFound

_HINT = "use HEAD, HEAD~N, 4 or more digits of an id, step:N, a tag, or - for the one served before"
_BACK = re.compile(r"HEAD(?:~([0-9]{1,9})?)?")
_STEP = re.compile(r"step:([0-9]{1,9})")
_ID = re.compile(r"[0-9a-fA-F]{4,40}")


@dataclass(frozen=True, slots=True)
class Revision:
    """`back`: `number` releases before the head. `step`: step `number`. `id` and `tag`: `text`."""

    kind: Literal["back", "step", "id", "tag"]
    text: str
    number: int = 0


class ReleaseRow(Protocol):
    """What is needed of a row of the history."""

    @property
    def step(self) -> int: ...
    @property
    def release_id(self) -> str: ...
    @property
    def candidate_id(self) -> str | None: ...
    @property
    def published(self) -> bool: ...


def parse_revision(text: str) -> Revision:
    """Read a revision.

    Raises:
        NotFound: it can name nothing; the hint lists what can.
    """
    if text == "-":
        return Revision("back", text, 1)
    if match := _BACK.fullmatch(text):
        return Revision("back", text, int(match[1] or 1) if "~" in text else 0)
    if match := _STEP.fullmatch(text):
        return Revision("step", text, int(match[1]))
    if _ID.fullmatch(text):
        return Revision("id", text.lower())
    try:
        return Revision("tag", check_tag(text))
    except Invalid:
        raise NotFound(f"`{text[:80]}` names no release", hint=_HINT) from None


def resolve(
    revision: Revision | str,
    rows: Sequence[ReleaseRow],
    *,
    candidates: Mapping[int, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> str:
    """The full release id that a revision means.

    Args:
        rows: the scenario's history, newest last.
        candidates: kept candidates that have no row yet: step to id.
        tags: tag to id.

    Raises:
        NotFound: it names none, or more than one.
    """
    wanted = parse_revision(revision) if isinstance(revision, str) else revision
    kept = candidates or {}
    if wanted.kind == "back":
        return _back(wanted, [row.release_id for row in rows if row.published])
    if wanted.kind == "step":
        return _of_step(wanted.number, rows, kept)
    if wanted.kind == "tag":
        if (found := (tags or {}).get(wanted.text)) is not None:
            return found
        raise NotFound(f"`{wanted.text}` names no release", hint=_HINT)
    known = {row.release_id for row in rows} | {row.candidate_id for row in rows if row.candidate_id}
    matches = sorted(one for one in known | set(kept.values()) if one.startswith(wanted.text))
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NotFound(
            f"{len(matches)} releases start with {wanted.text}",
            hint="give more digits: " + ", ".join(one[: len(wanted.text) + 4] for one in matches[:5]),
        )
    raise NotFound(
        f"no release of this scenario starts with {wanted.text}", hint="`reef log --all` lists them"
    )


def _back(wanted: Revision, served: Sequence[str]) -> str:
    if wanted.number < len(served):
        return served[-1 - wanted.number]
    count = f"there {'is' if len(served) == 1 else 'are'} {len(served)} release{'s' * (len(served) != 1)}"
    raise NotFound(f"`{wanted.text}` goes back too far: {count}", hint="`reef log` lists them")


def _of_step(step: int, rows: Sequence[ReleaseRow], kept: Mapping[int, str]) -> str:
    row = next((row for row in rows if row.step == step), None)
    if row is not None and row.published:
        return row.release_id
    found = (row.candidate_id if row is not None else None) or kept.get(step)
    if found:
        return found
    raise NotFound(
        f"step {step} left no release" if row is not None else f"there is no step {step}",
        hint="`reef steps` lists them",
    )
