"""What was said is looked for in every record once, whatever came while it was looked for."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest

from daemon.records.listing import Filter, listing
from reef.async_client import AsyncClient
from reef.errors import TimedOut
from reef.ids import now
from reef_cli.tui import contents
from reef_cli.tui.contents import Contents
from reef_cli.tui.tail import Tail
from tests.daemon.records.desk import Desk

PAGE = 4
BEGAN = now() - timedelta(hours=1)


class Shelf:
    """A client of a store, without a daemon. `looked` counts the records that were looked through."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.looked = 0
        self.broken = False

    async def at(self, minute: float, text: str) -> None:
        """A turn that ends now and began then."""
        await self.desk.book.append(self.desk.draft(text, created_at=BEGAN + timedelta(minutes=minute)))

    async def records(
        self, scenario: str | None, *, order: str, text: str | None = None, **more: Any
    ) -> dict[str, Any]:
        if text and self.broken:
            raise TimedOut("no answer")
        wanted = {name: value for name, value in more.items() if value is not None}
        asked = Filter(scenario=scenario, descending=order == "desc", text=text, **wanted)
        rows, last = self.desk.store.read_now(lambda connection: listing(connection, asked))
        if text:
            unfiltered = Filter(scenario=scenario, descending=order == "desc", **wanted)
            self.looked += len(
                self.desk.store.read_now(lambda connection: listing(connection, unfiltered))[0]
            )
        return {"records": rows, "next_after": last["agent_record_id"] if last else more.get("after")}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    monkeypatch.setattr(contents, "AT_ONCE", PAGE)
    desk = Desk.at(tmp_path)
    yield Shelf(desk)
    desk.store.close()


class Search:
    """One list of records and the word `needle` looked for in it."""

    def __init__(self, shelf: Shelf, scenario: str | None) -> None:
        self.shelf = shelf
        self.client = cast(AsyncClient, shelf)
        self.tail = Tail(scenario)
        self.contents = Contents(self.tail)

    async def load(self) -> None:
        self.contents.came(await self.tail.load_newest(self.client))

    def pages(self) -> AsyncIterator[None]:
        return self.contents.look(self.client, "needle")

    async def look(self) -> None:
        await self.load()
        while self.contents.stale(["needle"]):
            async for _ in self.pages():
                pass

    @property
    def found(self) -> int:
        return sum(self.contents.hold(record["agent_record_id"], "needle") for record in self.tail.listed)


@pytest.mark.parametrize("scenario", ["city", None])
def test_only_what_came_since_is_looked_through(shelf: Shelf, scenario: str | None) -> None:
    async def scene() -> None:
        search = Search(shelf, scenario)
        for minute in range(10):
            await shelf.at(minute, f"needle {minute}")
        await search.look()
        assert (search.found, shelf.looked) == (10, 10)
        await search.look()
        assert shelf.looked == 10
        for minute in range(10, 16):
            await shelf.at(minute, f"needle {minute}")
        await search.look()
        assert (search.found, shelf.looked) == (16, 16)
        await shelf.at(2.5, "a needle that began early")
        await shelf.at(17, "hay")
        await search.look()
        assert search.found == 17
        assert search.contents.reach(["needle"]) == inf

    asyncio.run(scene())


@pytest.mark.parametrize("scenario", ["city", None])
@pytest.mark.parametrize("after_page", [0, 1, 2])
def test_what_comes_while_it_is_looked_for_is_found(
    shelf: Shelf, scenario: str | None, after_page: int
) -> None:
    async def scene() -> None:
        search = Search(shelf, scenario)
        for minute in range(12):
            await shelf.at(minute, "hay")
        await search.load()
        page = 0
        async for _ in search.pages():
            if page == after_page:
                await shelf.at(11.5, "needle that began early")
                await shelf.at(13, "needle")
                await search.load()
            page += 1
        await search.look()
        assert search.found == 2

    asyncio.run(scene())


def test_a_call_without_an_answer_is_made_again(shelf: Shelf) -> None:
    async def scene() -> None:
        search = Search(shelf, "city")
        await shelf.at(0, "needle")
        await search.look()
        await shelf.at(1, "needle")
        shelf.broken = True
        with pytest.raises(TimedOut):
            await search.look()
        assert search.contents.stale(["needle"]) == ["needle"]
        shelf.broken = False
        await search.look()
        assert (search.found, shelf.looked) == (2, 2)

    asyncio.run(scene())


def test_how_far_was_looked_is_known(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SEARCHED", 2 * PAGE)

    async def scene() -> None:
        search = Search(shelf, "city")
        for minute in range(20):
            await shelf.at(minute, f"needle {minute}")
        await search.load()
        assert search.contents.reach(["needle"]) == 0
        assert search.contents.reach([]) == inf
        await search.look()
        assert (search.found, search.contents.reach(["needle"])) == (8, 8)
        for minute in range(20, 40):  # more than is looked through at once: the newest of them
            await shelf.at(minute, f"needle {minute}")
        await search.look()
        newest = search.tail.listed[:8]
        assert all(search.contents.hold(record["agent_record_id"], "needle") for record in newest)
        assert shelf.looked == 24

    asyncio.run(scene())
