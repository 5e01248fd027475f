"""What was said in records, as the daemon finds it: a list of records holds no bodies."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from reef_cli.tui.tail import Tail

if TYPE_CHECKING:
    from reef.async_client import AsyncClient

AT_ONCE = 250
SEARCHED = 5_000
"""How many records are looked through for a word: of the newest, and then of those that came at once."""

Record = dict[str, Any]


@dataclass(slots=True)
class _Look:
    """How far the records were looked through for one word."""

    since: Record | None = None
    """What comes behind this record is still to be looked through; behind None is all there is."""
    whole: bool = False
    """Whether the newest were looked through, so that only what is behind `since` is left."""
    reach: float = 0
    """How many of the newest that was."""
    found: set[str] = field(default_factory=set)


class Contents:
    """Which of the records that a tail lists hold a word in what was said. Each is looked through once."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._looks: dict[str, _Look] = {}

    def hold(self, receipt: str, word: str) -> bool:
        return word in self._looks and receipt in self._looks[word].found

    def reach(self, words: Iterable[str]) -> float:
        """How many of the newest records were looked through for each of these; infinite: all there are."""
        return min((self._looks.get(word, _Look()).reach for word in words), default=inf)

    def whole(self, words: Iterable[str]) -> bool:
        """Whether only records that came since may hold one of these unknown to us."""
        return all(self._looks.get(word, _Look()).whole for word in words)

    def stale(self, words: Iterable[str]) -> list[str]:
        """Those that are still to be looked for."""
        if self._tail.newest is None:
            return []
        return [word for word in words if word not in self._looks or self._is_stale(self._looks[word])]

    def _is_stale(self, look: _Look) -> bool:
        return not look.whole or _receipt(look.since) != _receipt(self._tail.newest)

    def came(self, new: list[Record]) -> None:
        """These were not there before. Over all scenarios a record stands where it began: one that ended
        late may stand before others that were looked through."""
        key = self._tail.key
        oldest = min(new, key=key, default=None)
        for look in self._looks.values():
            if oldest and look.since and key(oldest) < key(look.since):
                look.since = self._tail.before(oldest)

    async def look(self, client: "AsyncClient", word: str) -> AsyncIterator[None]:
        """Look for a word where it was not looked for yet, page by page. Raises `ReefError`."""
        look = self._looks.setdefault(word, _Look())
        if not look.whole:
            look.since, look.reach = self._tail.newest, 0
            async for at_end in self._pages(client, word, look, "desc", None):
                look.reach = inf if at_end else look.reach + AT_ONCE
                yield
            look.whole = True
        while look.whole and self._is_stale(look):
            since, look.since = look.since, self._tail.newest
            at_end = False
            try:
                async for last in self._pages(client, word, look, "asc", since):
                    at_end = last
                    yield
            except BaseException:  # no answer, or nobody waits for it any more: from there once more
                look.since = self._older(look.since, since)
                raise
            look.whole = at_end  # else more came than is looked through at once: the newest of it

    async def _pages(
        self, client: "AsyncClient", word: str, look: _Look, order: str, since: Record | None
    ) -> AsyncIterator[bool]:
        """Look through `SEARCHED` records at most; tell after each page whether nothing was left."""
        after = _receipt(since)
        for _ in range(0, SEARCHED, AT_ONCE):
            answer = await client.records(
                self._tail.scenario, limit=AT_ONCE, order=order, payload=False, text=word, after=after
            )
            look.found |= {record["agent_record_id"] for record in answer["records"]}
            before, after = after, answer.get("next_after")
            yield after in (None, before)
            if after in (None, before):
                return

    def _older(self, one: Record | None, other: Record | None) -> Record | None:
        return min(one, other, key=self._tail.key) if one and other else None


def _receipt(record: Record | None) -> str | None:
    return record["agent_record_id"] if record else None
