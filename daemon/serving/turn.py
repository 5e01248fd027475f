"""What is known of one exchange while it happens."""

import logging
from dataclasses import dataclass, field
from time import perf_counter

from daemon.records.draft import Draft, RecordStatus
from daemon.serving.call import Call
from daemon.serving.conversation import Said
from daemon.wire.bridge.crossing import Crossing
from daemon.wire.codec import Codec
from daemon.wire.facts import RequestFacts
from reef.errors import ReefError, Unavailable, UpstreamFailed
from reef.runtime import Parsed

log = logging.getLogger(__name__)

ANSWER_LIMIT = 2**28
"""Bytes of one answer: it is kept in memory until its record is stored."""


@dataclass(slots=True)
class Turn:
    """`opens`: what it says, where no conversation is known for it: its record is filed under that and its
    answer."""

    call: Call
    draft: Draft
    codec: Codec
    facts: RequestFacts
    opens: Said | None = None
    began: float = field(default_factory=perf_counter)
    sent: float | None = None
    """When the upstream asked last got the request; None where none has."""
    arrived: list[bytes] = field(default_factory=list)
    size: int = 0
    """Bytes that arrived."""
    crossing: Crossing | None = None
    """The bridge it goes over, where the upstream lacks its dialect."""

    def leave(self) -> None:
        """The request has left for the upstream."""
        self.sent = perf_counter()

    def take(self, chunk: bytes) -> None:
        """Keep a piece of the answer. Raises UpstreamFailed where it has become too long."""
        self.size += len(chunk)
        if self.size > ANSWER_LIMIT:
            raise UpstreamFailed(
                f"the answer is longer than {ANSWER_LIMIT // 2**20} MB", hint="ask for a shorter one"
            )
        if self.draft.ttft_ms is None:
            self.draft.ttft_ms = (perf_counter() - self.began) * 1000
        self.arrived.append(chunk)

    def end(self, status: RecordStatus, error: ReefError | None = None) -> Draft:
        """No more of the answer comes: fill in the draft. From here on the client cannot call it off.

        A whole answer for which no client waited any more is `aborted` too.
        """
        self.call.settled = True
        draft = self.draft
        draft.status = status = "aborted" if status == "complete" and self.call.left else status
        draft.response = b"".join(self.arrived)
        draft.upstream_ms = None if self.sent is None else (perf_counter() - self.sent) * 1000
        if error is not None:
            draft.error_type, draft.error_message = error.type, error.message
        if self.opens is not None and status == "complete":
            reader = self.crossing or self.codec
            draft.parsed = draft.parsed or reader.parse(draft.response, stream=draft.stream)
            draft.conversation = self._conversation(self.opens, draft.parsed)
            draft.opens = draft.conversation is not None
        draft.total_ms = (perf_counter() - self.began) * 1000
        return draft

    def called_off(self) -> Draft:
        """The client left, or the daemon stops."""
        if not self.call.stopping:
            return self.end("aborted")
        return self.end("failed", Unavailable("the daemon was stopped in the middle of it", hint="ask again"))

    def _conversation(self, said: Said, parsed: Parsed) -> str | None:
        """The conversation that begins with what was said and this answer; none where that is no turn."""
        if parsed.response is None:
            return None
        try:
            answer = self.codec.turn(parsed.response)
            return said.answered(answer) if answer is not None else None
        except Exception:  # whatever an upstream sent, the record of it is stored
            log.exception("the answer of record %s is no turn", self.draft.id)
            return None
