"""The record book: appends exchanges durably and knows which ones are still running."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from orjson import dumps, loads
from sqlalchemy import Connection, bindparam, insert, select, update

from daemon.records.draft import Draft
from daemon.records.entry import Entry, EntryMaker, PriceOf
from daemon.records.retries import supersede
from daemon.records.tally import Tally
from daemon.scrub import mask
from daemon.store.quick import Quick
from daemon.store.schema import aliases, records, scenarios
from daemon.store.store import Store
from reef.errors import NotFound, Unavailable

_RELEASE_OF = (
    select(records.c.release_id)
    .where(records.c.scenario == bindparam("scenario"), records.c.conversation == bindparam("conversation"))
    .order_by(records.c.sequence.desc())
    .limit(1)
)
_INSERT_RECORDS, _INSERT_ALIASES = Quick(insert(records)), Quick(insert(aliases))
_TAKE_SEQUENCES = Quick(
    update(scenarios)
    .where(scenarios.c.scenario == bindparam("name"))
    .values(next_sequence=scenarios.c.next_sequence + bindparam("count"))
    .returning(scenarios.c.next_sequence),
    ["next_sequence"],
)


class RecordBook:
    """Appends inference records. `price_of(upstream, model asked for, model that answered)` gives a cost to
    their tokens."""

    def __init__(self, store: Store, *, scrub: bool = True, price_of: PriceOf = lambda *_: None) -> None:
        self._store = store
        self._scrub = scrub
        self._maker = EntryMaker(scrub, price_of)
        self._running: dict[str, str] = {}
        self.tally = Tally()
        self.awaited: set[str] = set()
        """Running exchanges that a report names already."""

    @property
    def failed(self) -> Unavailable | None:
        """What the store failed with, until it is shown to take writes again."""
        return self._store.gate.failed

    async def ready(self) -> None:
        """See `daemon.store.gate.Gate.ready`. Raises `Unavailable`."""
        await self._store.gate.ready()

    def opened(self, receipt: str, scenario: str) -> None:
        """A receipt was handed out; its record will follow."""
        self._running[receipt] = scenario

    def closed(self, receipt: str) -> None:
        """The exchange is over, stored or not."""
        self._running.pop(receipt, None)

    @property
    def streams(self) -> int:
        """How many receipts were handed out whose records will follow."""
        return len(self._running)

    def running_in(self, receipt: str) -> str | None:
        """The scenario of an exchange that still runs."""
        return self._running.get(receipt)

    async def append(self, draft: Draft) -> None:
        """Store one exchange; durable when this returns. The draft gets what it used here, a turn that was
        none its right `kind`, and an error that came as if all were well its right `status`.

        Raises:
            Unavailable: the store cannot be written.
        """
        failed = self.failed
        await self._store.write_together(self._insert, draft)
        if failed is not None:
            self._store.gate.works(failed)
        self.tally.add(draft)

    async def measure(self, draft: Draft) -> None:
        """Fill in what an exchange used that could not be stored."""
        await asyncio.to_thread(self._maker.measure, draft)

    async def release_of(self, scenario: str, conversation: str) -> str | None:
        """The release a conversation is pinned to, by its newest record."""
        wanted = {"scenario": scenario, "conversation": conversation}
        return await self._store.read(lambda connection: connection.execute(_RELEASE_OF, wanted).scalar())

    def _insert(self, connection: Connection, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """Store the exchanges that wait, in the writer's thread."""
        commit = self._maker.commit()
        entries = [self._maker.entry(draft, commit) for draft in drafts]
        for entry, sequence in zip(entries, _sequences(connection, drafts), strict=True):
            entry.row["sequence"] = sequence
        commit.store(connection)
        _INSERT_RECORDS.many(connection, [entry.row for entry in entries])
        for entry in entries:
            if entry.messages is not None:
                entry.draft.superseded = supersede(
                    connection, entry.draft, entry.messages, entry.row["sequence"]
                )
        if names := list(_alias_rows(entries)):
            _INSERT_ALIASES.many(connection, names)
        return drafts

    def masked_value(self, value: Any) -> tuple[Any, int]:
        """A JSON value without credential-shaped literals, and how many there were."""
        text, hits = mask(dumps(value)) if self._scrub else (b"", 0)
        return loads(text) if hits else value, hits


def _alias_rows(entries: Sequence[Entry]) -> Iterator[dict[str, str]]:
    for entry in entries:
        for name in sorted(entry.names):
            yield {"scenario": entry.draft.scenario, "alias": name, "record_id": entry.draft.id}


def _sequences(connection: Connection, drafts: Sequence[Draft]) -> Iterator[int]:
    """The numbers of these exchanges, in their order."""
    counts = Counter(draft.scenario for draft in drafts)
    following = {name: _take(connection, name, count) for name, count in counts.items()}
    for draft in drafts:
        yield following[draft.scenario]
        following[draft.scenario] += 1


def next_sequence(connection: Connection, scenario: str) -> int:
    """Take the next number of a scenario, in the transaction that stores the record.

    Raises:
        NotFound: there is no such scenario.
    """
    return _take(connection, scenario, 1)


def _take(connection: Connection, scenario: str, count: int) -> int:
    """Take so many numbers; returns the first."""
    taken = _TAKE_SEQUENCES.scalar(connection, {"name": scenario, "count": count})
    if taken is None:
        raise NotFound(f"no scenario named `{scenario}`", hint="see `reef scenarios`")
    return int(taken) - count
