"""The tail of the records: the newest pages, and older ones as they are asked for."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reef.async_client import AsyncClient


PAGE = 500
NEWEST = 100
KEPT = 20_000
"""How many are kept while new ones come; more only where a person has scrolled further."""


class Tail:
    """Keeps what was loaded, newest first, of one scenario or of all (`scenario` None)."""

    def __init__(self, scenario: str | None = None) -> None:
        self.scenario = scenario
        self._known: dict[str, dict[str, Any]] = {}
        self._most = KEPT
        self.listed: list[dict[str, Any]] = []
        self.whole = False
        """Whether the oldest record is here."""

    def receipts(self) -> Iterable[str]:
        return self._known.keys()

    @property
    def newest(self) -> dict[str, Any] | None:
        return self.listed[0] if self.listed else None

    def before(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """The next older one that is listed."""
        key = self.key(record)
        return next((listed for listed in self.listed if self.key(listed) < key), None)

    async def load_newest(self, client: "AsyncClient") -> list[dict[str, Any]]:
        """Load what came; the records that were not known. Raises `ReefError`."""
        limit = NEWEST if self._known else PAGE
        page = await self._page(client, limit)
        new = [record for record in page if record["agent_record_id"] not in self._known]
        if self._known and not any(record["agent_record_id"] in self._known for record in page):
            self._known.clear()  # more came than a page holds
            self.whole = False
        if len(page) < limit:
            self.whole = True
        self._add(page)
        for record in self.listed[self._most :]:
            del self._known[record["agent_record_id"]]
            self.whole = False
        del self.listed[self._most :]
        return new

    async def load_older(self, client: "AsyncClient") -> None:
        """Raises `ReefError`."""
        if self.listed and not self.whole:
            page = await self._page(client, PAGE, self.listed[-1])
            self.whole = len(page) < PAGE
            self._add(page)
            self._most = max(self._most, len(self.listed))

    async def _page(
        self, client: "AsyncClient", limit: int, last: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Reports come with what they say: it is short, and all there is of them."""
        of_one = self.scenario is not None
        where: dict[str, Any] = {
            "order": "desc",
            "after_sequence": last["sequence"] if last and of_one else None,
            "after": last["agent_record_id"] if last and not of_one else None,
        }
        answer = await client.records(self.scenario, limit=limit, payload=False, **where)
        found: list[dict[str, Any]] = answer["records"]
        new = [
            record
            for record in found
            if record["request_type"] == "report" and record["agent_record_id"] not in self._known
        ]
        if not new:
            return [self._known.get(record["agent_record_id"], {}) | record for record in found]
        told = await client.records(self.scenario, limit=limit, payload=True, request_type="report", **where)
        whole = {record["agent_record_id"]: record for record in told["records"]}
        return [
            whole.get(record["agent_record_id"]) or self._known.get(record["agent_record_id"], {}) | record
            for record in found
        ]

    def _add(self, page: list[dict[str, Any]]) -> None:
        self._known |= {record["agent_record_id"]: record for record in page}
        self.listed = sorted(self._known.values(), key=self.key, reverse=True)

    def key(self, record: dict[str, Any]) -> tuple[Any, ...]:
        """What they are sorted by, as the daemon does it."""
        if self.scenario is not None:
            return (record["sequence"],)
        return record["created_at"], record["agent_record_id"]
