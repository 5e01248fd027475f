"""One request as it came in, and what is answered to it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from daemon.records.draft import RecordKind
from daemon.scrub import masked_name
from reef.ids import DEFAULT_SCENARIO
from reef.runtime import Dialect, Header

Begin = Callable[[], Awaitable[None]]
Write = Callable[[bytes], Awaitable[None]]
_SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "thread-id", "x-session-id")
_TAG = "x-reef-tag-"


@dataclass(slots=True)
class Call:
    """A provider request. `path` is what follows `/v1`, query string included; `body` is plain bytes."""

    dialect: Dialect
    path: str
    headers: Sequence[Header] = field(repr=False)
    body: bytes = field(repr=False)
    scenario: str = DEFAULT_SCENARIO
    tags: Mapping[str, str] = field(default_factory=dict)
    kind: RecordKind = "turn"
    start: str | None = None
    """The release that a new scenario is to start from."""
    settled: bool = False
    """The answer has arrived and is being stored: the client's going away changes nothing any more."""
    left: bool = False
    """The client went away before that."""
    stopping: bool = False
    """The daemon is going down and cannot wait for the end of the answer."""

    @property
    def run(self) -> str | None:
        """The run it belongs to, by tag."""
        run = self.tags.get("run")
        return masked_name(run) if run else run

    @property
    def session(self) -> str | None:
        """What the client calls its session, by tag or by a header of its own."""
        session = self.tags.get("session")
        if not session:
            found = dict(self.headers)
            session = next((found[name] for name in _SESSION_HEADERS if found.get(name)), None)
        return masked_name(session) if session else None


@dataclass(slots=True)
class Answer:
    """Status, headers and either a whole `body`, or `pump`: it awaits its first argument (which sends the
    headers) and then writes a stream as it arrives. A `pump` that is there must be called."""

    status: int
    headers: list[Header]
    body: bytes = b""
    pump: Callable[[Begin, Write], Awaitable[None]] | None = None


def tags_of(headers: Sequence[Header], run: str | None = None) -> dict[str, str]:
    """The tags a request carries; `run` is the one in its path, which a header overrides."""
    tags = {"run": run} if run else {}
    return tags | {name[len(_TAG) :]: value for name, value in headers if name.startswith(_TAG)}
