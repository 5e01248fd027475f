"""The record book: appends exchanges durably and knows which ones are still running."""

from collections.abc import Callable
from typing import Any

from orjson import dumps, loads
from sqlalchemy import Connection, bindparam, insert, select, update

from daemon.records.bodies import store_body
from daemon.records.draft import Draft
from daemon.records.kinds import kind_of
from daemon.records.retries import message_hash, supersede
from daemon.records.tally import Tally
from daemon.store.codec import dump
from daemon.store.schema import aliases, records, scenarios
from daemon.store.store import Store
from daemon.wire.bridge.crossing import read_answer
from daemon.wire.codec import codec_for
from daemon.wire.errors import error_in
from daemon.wire.scrub import mask
from reef.errors import Invalid, NotFound
from reef.feedback import Usage
from reef.ids import rfc3339
from reef.runtime import Price

ERROR_CHARS = 2000


class RecordBook:
    """Appends inference records. `price_of(upstream, model asked for, model that answered)` gives a cost to
    their tokens."""

    def __init__(
        self,
        store: Store,
        *,
        scrub: bool = True,
        price_of: Callable[[str | None, str | None, str | None], Price | None] = lambda *_: None,
    ) -> None:
        self._store = store
        self._scrub = scrub
        self._price_of = price_of
        self._running: dict[str, str] = {}
        self.tally = Tally()
        self.awaited: set[str] = set()
        """Running exchanges that a report names already."""

    def opened(self, receipt: str, scenario: str) -> None:
        """A receipt was handed out; its record will follow."""
        self._running[receipt] = scenario

    def closed(self, receipt: str) -> None:
        """The exchange is over, stored or not."""
        self._running.pop(receipt, None)

    def running_in(self, receipt: str) -> str | None:
        """The scenario of an exchange that still runs."""
        return self._running.get(receipt)

    async def append(self, draft: Draft) -> None:
        """Store one exchange; durable when this returns. The draft gets its usage here, a turn that was none
        its right `kind`, and an error that came as if all were well its right `status`.

        Raises:
            Unavailable: the store cannot be written.
        """
        draft.usage = await self._store.write(lambda connection: self._insert(connection, draft))
        self.tally.add(draft.scenario, draft.kind, draft.status, draft.upstream_name, draft.usage)

    async def release_of(self, scenario: str, conversation: str) -> str | None:
        """The release a conversation is pinned to, by its newest record."""
        query = (
            select(records.c.release_id)
            .where(records.c.scenario == scenario, records.c.conversation == conversation)
            .order_by(records.c.sequence.desc())
            .limit(1)
        )
        return await self._store.read(lambda connection: connection.execute(query).scalar())

    def _insert(self, connection: Connection, draft: Draft) -> Usage:
        messages = _recognise(draft) if draft.kind == "turn" else None
        parsed = read_answer(
            draft.dialect,
            draft.response,
            stream=draft.stream,
            bridged=draft.bridged,
            request=draft.request,
            receipt=draft.id,
        )
        if draft.status == "complete" and (told := error_in(parsed.response)):
            draft.status, draft.error_type = "failed", "upstream"
            draft.error_message = f"the upstream answered {draft.http_status} with an error: {told}"
        price = self._price_of(draft.upstream_name, draft.model, parsed.model)
        usage = Usage(
            parsed.input_tokens,
            parsed.output_tokens,
            parsed.cached_tokens,
            price.cost(parsed.billed) if price and parsed.billed else None,
        )
        request, hits = self._masked(draft.request)
        forwarded, more = (None, 0) if draft.forwarded is None else self._masked(draft.forwarded)
        response, yet_more = self._masked(draft.response)
        said, in_error = self._masked((draft.error_message or "").encode())
        tags, in_tags = self._masked(dumps(dict(draft.tags)))
        attempts, in_attempts = self._masked(dumps(draft.attempts))
        scrubbed = hits + more + yet_more + in_error + in_tags + in_attempts
        connection.execute(
            insert(records),
            {
                "id": draft.id,
                "scenario": draft.scenario,
                "sequence": next_sequence(connection, draft.scenario),
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
                "model": draft.model or parsed.model,
                "upstream_name": draft.upstream_name,
                "upstream_model": parsed.model,
                "upstream_request_id": draft.upstream_request_id,
                "stream": draft.stream,
                "http_status": draft.http_status,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens,
                "cost": usage.cost,
                "ttft_ms": draft.ttft_ms,
                "upstream_ms": draft.upstream_ms,
                "total_ms": draft.total_ms,
                "dropped": dump(list(draft.dropped)),
                "error_type": draft.error_type,
                "error_message": said.decode()[:ERROR_CHARS] if draft.error_type else None,
                "metadata": dump(
                    {"tags": loads(tags), "scrubbed": scrubbed, "imported": False}
                    | ({"bridged": draft.bridged} if draft.bridged else {})
                    | ({"attempts": loads(attempts)} if draft.attempts else {})
                ),
                "request_pieces": store_body(connection, request),
                "forwarded_pieces": None if forwarded is None else store_body(connection, forwarded),
                "response_pieces": store_body(connection, response),
                "message_hash": messages,
            },
        )
        if messages is not None:
            draft.superseded = supersede(connection, draft, messages)
        names = {*draft.aliases, *parsed.aliases} - {draft.id}
        if draft.upstream_request_id:
            names.add(draft.upstream_request_id)
        if names:
            rows = [
                {"scenario": draft.scenario, "alias": name, "record_id": draft.id} for name in sorted(names)
            ]
            connection.execute(insert(aliases), rows)
        return usage

    def _masked(self, body: bytes) -> tuple[bytes, int]:
        return mask(body) if self._scrub else (body, 0)

    def masked_value(self, value: Any) -> tuple[Any, int]:
        """A JSON value without credential-shaped literals, and how many there were."""
        text, hits = self._masked(dumps(value))
        return loads(text) if hits else value, hits


def _recognise(draft: Draft) -> bytes | None:
    """Give the draft its right kind; for a turn, return the hash of its messages.

    What cannot be read is a turn without one.
    """
    try:
        facts = draft.facts or codec_for(draft.dialect).facts(draft.request)
        draft.kind = kind_of(facts)
        return message_hash(facts.payload) if draft.kind == "turn" else None
    except (Invalid, RecursionError):
        return None


_TAKE_SEQUENCE = (
    update(scenarios)
    .where(scenarios.c.scenario == bindparam("name"))
    .values(next_sequence=scenarios.c.next_sequence + 1)
    .returning(scenarios.c.next_sequence)
)


def next_sequence(connection: Connection, scenario: str) -> int:
    """Take the next number of a scenario, in the transaction that stores the record.

    Raises:
        NotFound: there is no such scenario.
    """
    taken = connection.execute(_TAKE_SEQUENCE, {"name": scenario}).scalar()
    if taken is None:
        raise NotFound(f"no scenario named `{scenario}`", hint="see `reef scenarios`")
    return int(taken) - 1
