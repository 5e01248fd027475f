"""Names and ids: how they are made and which are legal (protocol section 1)."""

import os
import random
import re
import time
from datetime import UTC, datetime

from reef.errors import Invalid

_SCENARIO = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_CLIENT_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_ENTRY_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

DEFAULT_SCENARIO = "default"

# Ids are to differ, not to be secret; and asking the system for each lets another thread go first.
_random = random.Random()  # noqa: S311  # no secrets are made of it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def new_receipt() -> str:
    """A lower-case UUIDv7 (RFC 9562): 48 bits of milliseconds, then 74 random bits."""
    value = (time.time_ns() // 1_000_000) << 80 | _random.getrandbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def check_scenario(name: str) -> str:
    """Return `name` if it may name a scenario (it also names a git branch).

    Raises:
        Invalid: with the rule in the hint.
    """
    legal = (
        _SCENARIO.fullmatch(name)
        and ".." not in name
        and not name.endswith((".", ".lock"))
        and name != "HEAD"
    )
    if not legal:
        raise Invalid(
            f"`{name[:140]}` cannot name a scenario",
            hint="use 1-128 of A-Z a-z 0-9 . _ -, not starting with . or -, no .., "
            "not ending in . or .lock, not HEAD",
        )
    return name


def check_client_id(value: str, *, what: str = "id") -> str:
    """Return `value` if a client may choose it as the id of a report or an import."""
    if not _CLIENT_ID.fullmatch(value):
        raise Invalid(f"`{value[:140]}` cannot be an {what}", hint="use 1-128 of A-Z a-z 0-9 . _ : -")
    return value


def is_entry_id(value: str) -> bool:
    """Whether `value` may be the id of a harness entry."""
    return _ENTRY_ID.fullmatch(value) is not None


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """`2026-01-31T12:00:00.000Z`: UTC with milliseconds, sortable as text."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
