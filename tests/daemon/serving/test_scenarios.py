"""What a conversation is pinned to is looked up once, known or not, and never wrong after that."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.releases.git import GitReleases
from daemon.releases.history import History
from daemon.serving.scenarios import Scenarios
from daemon.settings.model import RecipeSection
from daemon.store.store import Store
from reef.errors import Conflict
from reef.ids import new_receipt, now
from reef.tree import HarnessTree


class Counting(RecordBook):
    """Counts the look-ups; `during` is recorded, and `heard` called with it, while one is under way."""

    looked_up = 0
    during: Draft | None = None
    heard: Callable[[Draft], None]

    async def release_of(self, scenario: str, conversation: str) -> str | None:
        self.looked_up += 1
        found = await super().release_of(scenario, conversation)
        if self.during is not None:
            await self.append(self.during)
            self.heard(self.during)
        return found


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[tuple[Scenarios, Counting]]:
    store = Store.at(tmp_path / "reef.db")
    book = Counting(store)
    section = RecipeSection(use="record")
    git = GitReleases(tmp_path / "releases.git")
    scenarios = Scenarios(
        History(store, git),
        book,
        lambda _: ("record", section),
        lambda _: HarnessTree(),
    )
    book.heard = scenarios.recorded
    yield scenarios, book
    git.close()
    store.close()


def draft(conversation: str, release: str) -> Draft:
    return Draft(
        new_receipt(), "s", now(), "chat", request=b"{}", conversation=conversation, release_id=release
    )


def test_one_that_is_unknown_is_looked_up_once(rooms: tuple[Scenarios, Counting]) -> None:
    scenarios, book = rooms

    async def scene() -> None:
        await scenarios.serve("s")
        assert [await scenarios.pinned("s", "c") for _ in range(3)] == [None] * 3
        assert book.looked_up == 1

    asyncio.run(scene())


def test_one_that_was_recorded_is_known_at_once(rooms: tuple[Scenarios, Counting]) -> None:
    scenarios, book = rooms

    async def scene() -> None:
        head = await scenarios.serve("s")
        assert await scenarios.pinned("s", "c") is None
        opened = draft("c", head.release_id)
        await book.append(opened)
        scenarios.recorded(opened)
        assert await scenarios.pinned("s", "c") == head
        assert book.looked_up == 1

    asyncio.run(scene())


@pytest.mark.parametrize("at_head", [True, False])
def test_one_that_is_recorded_during_a_look_up_is_not_forgotten(
    rooms: tuple[Scenarios, Counting], at_head: bool
) -> None:
    scenarios, book = rooms

    async def scene() -> None:
        head = await scenarios.serve("s")
        if not at_head:  # another release came between the request and its record
            scenarios.get("s").head = type(head)("s", "r" * 40, head.content_id, head.prefix)
        book.during = draft("c", head.release_id)
        assert await scenarios.pinned("s", "c") is None
        book.during = None
        pinned = await scenarios.pinned("s", "c")
        assert pinned is not None
        assert pinned.release_id == head.release_id

    asyncio.run(scene())


def test_of_two_that_begin_a_scenario_at_once_the_second_must_want_the_same_start(
    rooms: tuple[Scenarios, Counting],
) -> None:
    scenarios, _ = rooms

    async def scene() -> None:
        starts = [(await scenarios.serve(name)).release_id for name in ("a", "b")]
        both = (scenarios.serve("new", start=start) for start in starts)
        first, second = await asyncio.gather(*both, return_exceptions=True)
        assert not isinstance(first, BaseException)
        assert isinstance(second, Conflict)
        assert await scenarios.serve("new", start=starts[0]) == first

    asyncio.run(scene())
