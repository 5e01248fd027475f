"""Publishing, stopped at every point between the intent and the row: the next start finishes it alike."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from daemon.releases import catalog
from daemon.releases.commits import CommitPlan
from daemon.releases.git import GitReleases
from daemon.releases.history import History, Publication, Published
from daemon.store.schema import intents, scenarios
from daemon.store.store import Store
from reef.errors import Conflict, Unavailable
from reef.ids import now, rfc3339
from tests.daemon.releases.test_git import git as run_git

FIRST, SECOND = {"rules/a.md": b"one\n"}, {"rules/a.md": b"two\n"}


class Killed(BaseException):
    """The process ends here."""


class Dying(GitReleases):
    """Dies (or fails with `error`) before or after one of its calls."""

    at = ""
    error: BaseException | None = None

    def commit(self, plan: Any) -> str:
        self._reach("before commit")
        made = super().commit(plan)
        self._reach("after commit")
        return made

    def publish(self, scenario: str, release_id: str, expected: str | None) -> None:
        self._reach("before publish")
        super().publish(scenario, release_id, expected)
        self._reach("after publish")

    def _reach(self, point: str) -> None:
        if self.at == point:
            raise self.error or Killed


POINTS = ("before commit", "after commit", "before publish", "after publish")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.at(tmp_path / "reef.db")
    yield opened
    opened.close()


@pytest.fixture
def git(tmp_path: Path) -> Iterator[Dying]:
    opened = Dying(tmp_path / "releases.git")
    yield opened
    opened.close()


@pytest.fixture
def history(store: Store, git: Dying) -> History:
    return History(store, git)


def creation(git: GitReleases) -> Publication:
    return Publication("s", "creation", git.write_tree(FIRST), None, "Create scenario s", "record")


def training(git: GitReleases, parent: str, step: int | None = None) -> Publication:
    return Publication("s", "training", git.write_tree(SECOND), parent, "Better", "grow", step=step)


async def create(history: History) -> Published:
    columns = {"scenario": "s", "folded": "s", "recipe": "record", "created_at": rfc3339(now())}
    return await history.create("s", creation(history.git), columns)


def state(history: History) -> tuple[str | None, list[str], int, str | None]:
    """The head in the store, published releases, open intents, the head in git."""

    def look(connection: Connection) -> tuple[str | None, list[str], int]:
        head = connection.execute(select(scenarios.c.head_release_id)).scalar()
        rows = [row["release_id"] for row in catalog.rows(connection, "s") if row["published"]]
        unfinished = connection.execute(select(intents).where(intents.c.done_at.is_(None))).all()
        return head, rows, len(unfinished)

    return (*history.store.read_now(look), history.git.head("s"))


def again(history: History) -> History:
    """What the next start opens on the same home."""
    return History(history.store, GitReleases(history.git.path))


@pytest.mark.parametrize("point", POINTS)
def test_a_release_cut_off_is_finished_with_the_same_id(history: History, git: Dying, point: str) -> None:
    async def scene() -> None:
        first = await create(history)
        git.at = point
        with pytest.raises(Killed):
            await history.publish(training(git, first.release_id, step=1))
        git.at = ""
        moved = git.head("s")
        fresh = again(history)
        (finished,) = await fresh.recover()
        if point == "after publish":
            assert finished.release_id == moved
        assert state(fresh) == (
            finished.release_id,
            [first.release_id, finished.release_id],
            0,
            git.head("s"),
        )
        assert finished.step == 1
        assert await fresh.recover() == []
        repeated = await fresh.publish(training(git, first.release_id, step=1))
        assert repeated == finished, "the step that asks again gets what was made"

    asyncio.run(scene())


@pytest.mark.parametrize("point", ["before commit", "after commit", "before publish"])
def test_one_cut_off_whose_files_somebody_pruned_is_taken_back(
    history: History, git: Dying, point: str
) -> None:
    async def scene() -> None:
        first = await create(history)
        git.at = point
        with pytest.raises(Killed):
            await history.publish(training(git, first.release_id, step=1))
        git.at = ""
        run_git(git.path, "gc", "--quiet", "--prune=now")
        fresh = again(history)
        assert await fresh.recover() == []
        assert state(fresh) == (first.release_id, [first.release_id], 0, first.release_id)
        await fresh.publish(training(fresh.git, first.release_id, step=1))
        fresh.git.close()

    asyncio.run(scene())


@pytest.mark.parametrize("point", POINTS)
def test_a_creation_cut_off_is_finished(history: History, git: Dying, point: str) -> None:
    async def scene() -> None:
        git.at = point
        with pytest.raises(Killed):
            await create(history)
        git.at = ""
        fresh = again(history)
        (finished,) = await fresh.recover()
        assert state(fresh) == (finished.release_id, [finished.release_id], 0, finished.release_id)
        assert (finished.step, finished.operation) == (0, "creation")

    asyncio.run(scene())


def test_the_id_does_not_depend_on_when_it_is_finished(history: History, git: Dying) -> None:
    async def scene() -> None:
        first = await create(history)
        git.at = "before publish"
        with pytest.raises(Killed):
            await history.publish(training(git, first.release_id, step=1))
        git.at = ""
        made = {line for line in git._git.text("fsck", "--unreachable").splitlines() if "commit" in line}
        await asyncio.sleep(1.1)  # a commit's date has whole seconds
        (finished,) = await again(history).recover()
        assert any(finished.release_id in line for line in made)

    asyncio.run(scene())


@pytest.mark.parametrize("point", POINTS[:3])
def test_a_failing_git_takes_the_intent_back(history: History, git: Dying, point: str) -> None:
    async def scene() -> None:
        git.at, git.error = point, Unavailable("no space left")
        with pytest.raises(Unavailable):
            await create(history)
        git.at = ""
        assert state(history) == (None, [], 0, None)
        first = await create(history)
        git.at = point
        with pytest.raises(Unavailable):
            await history.publish(training(git, first.release_id))
        git.at = ""
        assert state(history) == (first.release_id, [first.release_id], 0, first.release_id)
        second = await history.publish(training(git, first.release_id))
        assert state(history)[0] == second.release_id

    asyncio.run(scene())


def test_a_failure_after_the_ref_moved_keeps_the_intent(history: History, git: Dying) -> None:
    async def scene() -> None:
        first = await create(history)
        git.at, git.error = "after publish", Unavailable("no space left")
        with pytest.raises(Unavailable):
            await history.publish(training(git, first.release_id, step=1))
        git.at = ""
        assert state(history)[2] == 1
        second = await history.publish(training(git, first.release_id, step=1))
        assert state(history) == (second.release_id, [first.release_id, second.release_id], 0, git.head("s"))

    asyncio.run(scene())


def test_a_stale_head_is_refused_and_leaves_nothing(history: History, git: Dying) -> None:
    async def scene() -> None:
        first = await create(history)
        second = await history.publish(training(git, first.release_id))
        with pytest.raises(Conflict, match="stale head"):
            await history.publish(creation(git))
        assert state(history)[0] == second.release_id
        assert state(history)[2] == 0

    asyncio.run(scene())


def test_what_cannot_be_finished_does_not_keep_the_daemon_from_starting(history: History, git: Dying) -> None:
    async def scene() -> None:
        first = await create(history)
        git.at = "before commit"
        with pytest.raises(Killed):
            await history.publish(training(git, first.release_id, step=1))
        git.at = ""
        when = datetime(2026, 1, 1, tzinfo=UTC)
        elsewhere = git.commit(CommitPlan("s", git.write_tree(FIRST), first.release_id, "by hand", when))
        git.publish("s", elsewhere, first.release_id)
        assert await again(history).recover() == []
        assert state(history)[2] == 0

    asyncio.run(scene())


def test_rows_keep_the_order_in_which_they_were_served(
    history: History, git: Dying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that began early may publish late, and a clock may be set back."""

    async def scene() -> None:
        first = await create(history)
        second = await history.publish(training(git, first.release_id, step=7))
        monkeypatch.setattr(catalog, "now", lambda: now().replace(year=2001))
        third = await history.publish(training(git, second.release_id, step=3))
        rows = history.store.read_now(lambda connection: catalog.listing(connection, "s"))
        assert [row["release_id"] for row in rows] == [one.release_id for one in (first, second, third)]
        assert [row["current"] for row in rows] == [False, False, True]
        head = history.store.read_now(lambda connection: catalog.resolve_revision(connection, "s", "HEAD"))
        assert head[0] == third.release_id

    asyncio.run(scene())
