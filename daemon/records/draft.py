"""An exchange as the proxy saw it, before it is stored: raw bytes and what was known at the time.

What the bytes say (usage, aliases, text) is read off them by the writer, off the path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from daemon.wire.facts import RequestFacts
from reef.feedback import Usage
from reef.runtime import Billed, Dialect, Parsed

RecordKind = Literal["turn", "title", "compaction", "count_tokens", "episode"]
RecordStatus = Literal["complete", "aborted", "failed"]


@dataclass(slots=True)
class Draft:
    """One inference record to be. Times in `*_ms` are milliseconds; bodies are plain (decoded) bytes."""

    id: str
    scenario: str
    created_at: datetime
    dialect: Dialect
    kind: RecordKind = "turn"
    status: RecordStatus = "complete"
    request: bytes = b""
    facts: RequestFacts | None = None
    """What `request` says, where it was read already."""
    forwarded: bytes | None = None
    """None: what was received was forwarded."""
    bridged: Dialect | None = None
    """The dialect of `forwarded` and `response` where it is not the client's own."""
    response: bytes = b""
    parsed: Parsed | None = None
    """What `response` says, where it was read already."""
    stream: bool = False
    http_status: int | None = None
    run: str | None = None
    session: str | None = None
    conversation: str | None = None
    opens: bool = False
    """Its conversation begins here: it is named for what was said, which others may have said too."""
    tags: Mapping[str, str] = field(default_factory=dict)
    release_id: str | None = None
    content_id: str | None = None
    model: str | None = None
    upstream_name: str | None = None
    upstream_request_id: str | None = None
    aliases: Sequence[str] = ()
    """Further names known from headers (the upstream's request id)."""
    dropped: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    """How each try but the one that this tells of ended, at this upstream or another."""
    usage: Usage = Usage()
    """As the upstream reported it; read off `response` when it is stored."""
    tokens: Billed | None = None
    """What was read and written, as far as it was told; None where it was not, or nobody used any."""
    superseded: Sequence[tuple[str, str]] = ()
    """(report, receipt) of verdicts that changed when it was stored, since it counts instead."""
    error_type: str | None = None
    error_message: str | None = None
    ttft_ms: float | None = None
    upstream_ms: float | None = None
    """From when the request left for the upstream, which is after its turn came; None where none left."""
    total_ms: float | None = None
