"""The turns without feedback, newest first, with their payloads fetched once each."""

import asyncio
from typing import TYPE_CHECKING, Any

from reef_cli.tui.outbox import Held

if TYPE_CHECKING:
    from reef.async_client import AsyncClient

PAGE = 100
MOST = 1000


def wholes(turn: dict[str, Any]) -> str | None:
    """The reference that means all of a turn's session, else of its run."""
    for kind in ("session", "run"):
        if turn.get(kind):
            return f"{kind}:{turn[kind]}"
    return None


class Turns:
    """`load` asks for what is new. Payloads can be large, so those that are known are not asked for again."""

    def __init__(self) -> None:
        self._wanted = PAGE
        self._known: dict[str, dict[str, Any]] = {}
        self.listed: list[dict[str, Any]] = []
        self.more = False
        self._named: dict[str, str] = {}
        """Receipts that a report names which is out, with its id."""

    @property
    def open(self) -> list[dict[str, Any]]:
        """Those on the list whose report is not out yet."""
        return [turn for turn in self.listed if turn["agent_record_id"] not in self._named]

    def close(self, held: Held) -> None:
        """A report on these goes out."""
        for turn in self.listed:
            if held.reference in (turn["agent_record_id"], wholes(turn)):
                self._named[turn["agent_record_id"]] = held.report_id

    def reopen(self, held: Held) -> None:
        """It did not get through."""
        self._named = {turn: report for turn, report in self._named.items() if report != held.report_id}

    def get(self, receipt: str) -> dict[str, Any] | None:
        return self._known.get(receipt)

    def widen(self) -> None:
        """Show older ones too from the next load on."""
        self._wanted = min(self._wanted + PAGE, MOST)

    async def load(self, client: "AsyncClient", scenario: str | None) -> list[dict[str, Any]]:
        """Raises `ReefError`."""
        answer = await client.records(
            scenario, limit=self._wanted, kind="turn", reported=False, order="desc", payload=False
        )
        rows = answer["records"]
        missing = [row for row in rows if row["agent_record_id"] not in self._known]
        await self._learn(client, missing)
        self.listed = [
            self._known[row["agent_record_id"]] for row in rows if row["agent_record_id"] in self._known
        ]
        self._known = {turn["agent_record_id"]: turn for turn in self.listed}
        self.more = self._wanted < MOST and len(rows) == self._wanted
        return self.listed

    async def _learn(self, client: "AsyncClient", rows: list[dict[str, Any]]) -> None:
        """Fetch payloads, a few at once."""
        gate = asyncio.Semaphore(8)

        async def one(row: dict[str, Any]) -> None:
            async with gate:
                self._known[row["agent_record_id"]] = await client.record(
                    row["agent_record_id"], row["scenario"]
                )

        await asyncio.gather(*(one(row) for row in rows))
