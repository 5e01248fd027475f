"""From a draft to the row of its record: what its bytes say, what they cost, and nothing secret in them.

All of it is done in the writer's thread, off the path of the answer's bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orjson import dumps, loads

from daemon.records.draft import Draft
from daemon.records.keeping import Bodies, Commit, Kept
from daemon.records.kinds import kind_of
from daemon.records.retries import MessageNames
from daemon.scrub import mask, masked_name
from daemon.store.codec import dump
from daemon.wire.bridge.crossing import read_answer
from daemon.wire.codec import codec_for
from daemon.wire.errors import error_in
from reef.errors import Invalid
from reef.feedback import Usage
from reef.ids import rfc3339
from reef.runtime import Billed, Parsed, Price

ERROR_CHARS = 2000
TOKENS_MOST = 2**53
"""Of one record: whatever an upstream claims, a database can add up a day of them."""
PriceOf = Callable[[str | None, str | None, str | None], Price | None]
"""Of (upstream, model asked for, model that answered)."""


@dataclass(slots=True)
class Entry:
    """One record to be: its `row` (the sequence is not in it yet), its further `names`, and the hash of its
    `messages` where it is a turn."""

    draft: Draft
    row: dict[str, Any]
    names: set[str]
    messages: bytes | None


class EntryMaker:
    """Makes entries. `scrub`: credential-shaped literals are masked."""

    def __init__(self, scrub: bool, price_of: PriceOf) -> None:
        self._scrub = scrub
        self._price_of = price_of
        self._bodies = Bodies(scrub)
        self._names = MessageNames()
        self.commit = self._bodies.commit

    def entry(self, draft: Draft, commit: Commit) -> Entry:
        """Read a draft, and have its bodies stored with `commit`.

        The draft gets its right `kind`, what it used, and `status` where the answer was an error after all.
        """
        request = self._bodies.request(draft.request, draft.id, commit)
        messages = self._recognise(draft, request) if draft.kind == "turn" else None
        parsed = self.measure(draft)
        usage = draft.usage
        if draft.status == "complete" and (told := error_in(parsed.response)):
            draft.status, draft.error_type = "failed", "upstream"
            draft.error_message = f"the upstream answered {draft.http_status} with an error: {told}"
        if draft.status == "complete" and parsed.unread is not None:
            draft.status, draft.error_type = "failed", "upstream"
            draft.error_message = f"an event of the stream cannot be read: {parsed.unread}"
        forwarded = None
        if draft.forwarded is not None:
            forwarded = self._bodies.forwarded(draft.forwarded, request, commit)
        response, scrubbed = commit.add(draft.response) if draft.response else (b"", 0)
        scrubbed += sum(hits for kept in (request, forwarded) if kept for hits in kept.masked.values())
        said, in_error = self._masked((draft.error_message or "").encode())
        metadata: dict[str, Any] = {"tags": dict(draft.tags)}
        if draft.bridged:
            metadata["bridged"] = draft.bridged
        if draft.attempts:
            metadata["attempts"] = draft.attempts
        in_metadata = 0
        if draft.tags or draft.attempts:
            masked, in_metadata = self._masked(dumps(metadata))
            metadata = loads(masked) if in_metadata else metadata
        scrubbed += in_error + in_metadata
        upstream_model = masked_name(parsed.model) if parsed.model else None  # some repeat what was asked for
        row = {
            "id": draft.id,
            "scenario": draft.scenario,
            "request_type": "inference",
            "created_at": rfc3339(draft.created_at),
            "kind": draft.kind,
            "status": draft.status,
            "run": draft.run,
            "session": draft.session,
            "conversation": draft.conversation,
            "release_id": draft.release_id,
            "content_id": draft.content_id,
            "dialect": draft.dialect,
            "model": masked_name(draft.model) if draft.model else upstream_model,
            "upstream_name": draft.upstream_name,
            "upstream_model": upstream_model,
            "upstream_request_id": draft.upstream_request_id,
            "stream": draft.stream,
            "http_status": draft.http_status,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "billed_tokens": min(draft.tokens.total, TOKENS_MOST) if draft.tokens else None,
            "cost": usage.cost,
            "ttft_ms": draft.ttft_ms,
            "upstream_ms": draft.upstream_ms,
            "total_ms": draft.total_ms,
            "dropped": dump(draft.dropped),
            "error_type": draft.error_type,
            "error_message": said.decode()[:ERROR_CHARS] if draft.error_type else None,
            "metadata": dump(metadata | {"scrubbed": scrubbed, "imported": False}),
            "request_pieces": request.keys,
            "forwarded_pieces": forwarded.keys if forwarded else None,
            "response_pieces": response,
            "message_hash": messages,
        }
        names = {*draft.aliases, *parsed.aliases} - {draft.id}
        if draft.upstream_request_id:
            names.add(draft.upstream_request_id)
        return Entry(draft, row, names, messages)

    def measure(self, draft: Draft) -> Parsed:
        """Read the answer of a draft, and fill in what it used. May be called in any thread."""
        parsed = draft.parsed or read_answer(
            draft.dialect,
            draft.response,
            stream=draft.stream,
            bridged=draft.bridged,
            request=draft.request,
            receipt=draft.id,
        )
        price = self._price_of(draft.upstream_name, draft.model, parsed.model)
        draft.usage = Usage(
            parsed.input_tokens,
            parsed.output_tokens,
            parsed.cached_tokens,
            price.cost(parsed.billed) if price and parsed.billed else None,
        )
        draft.tokens = None if draft.kind == "count_tokens" else _tokens(draft, parsed)
        return parsed

    def _masked(self, text: bytes) -> tuple[bytes, int]:
        return mask(text) if self._scrub and text else (text, 0)

    def _recognise(self, draft: Draft, request: Kept) -> bytes | None:
        """Give the draft its right kind; for a turn, return the name of its messages.

        What cannot be read is a turn without one.
        """
        try:
            facts = draft.facts or codec_for(draft.dialect).facts(draft.request)
            draft.kind = kind_of(facts)
            return self._names.name(facts.payload, request.keys_of) if draft.kind == "turn" else None
        except (Invalid, RecursionError):
            return None


def _tokens(draft: Draft, parsed: Parsed) -> Billed | None:
    """What an answer says was used; where it tells only some of it, that."""
    read, written = parsed.input_tokens, parsed.output_tokens
    if parsed.billed is not None or (read is None and written is None):
        return parsed.billed
    beside = parsed.cached_tokens if draft.dialect == "messages" else None
    return Billed(read or 0, written or 0, beside or 0)
