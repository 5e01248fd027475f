"""What was said in records, as the daemon finds it: a list of records holds no bodies."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reef.async_client import AsyncClient

AT_ONCE = 250
NEW = 100
"""Of the newest, each time that new ones came."""
SEARCHED = 5_000
"""How many of the newest records are looked through for a word."""


class Contents:
    """Which records of a scenario (None: of all) hold a word in what was said."""

    def __init__(self, scenario: str | None = None) -> None:
        self._scenario = scenario
        self._found: dict[str, set[str]] = {}

    def hold(self, receipt: str, word: str) -> bool:
        return receipt in self._found.get(word, ())

    async def look(self, client: "AsyncClient", word: str, most: int = SEARCHED) -> AsyncIterator[None]:
        """Look for a word in the newest `most` records, page by page. Raises `ReefError`."""
        found = self._found.setdefault(word, set())
        after: str | None = None
        limit = min(AT_ONCE, most)
        for _ in range(0, most, AT_ONCE):
            answer = await client.records(
                self._scenario, limit=limit, order="desc", payload=False, text=word, after=after
            )
            found |= {record["agent_record_id"] for record in answer["records"]}
            yield
            before, after = after, answer.get("next_after")
            if after in (None, before):
                return
