"""What a person decides holds, whoever decides at the same time and whatever becomes of the daemon."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from daemon.evaluation.comparison import Stopped
from daemon.events import EventBus
from daemon.growth import steps
from daemon.growth.chronicle import Chronicle, history_row
from daemon.growth.review import Review
from daemon.growth.step import StepRun
from daemon.releases import catalog
from daemon.releases.history import Publication, Published
from daemon.settings.model import RecipeSection
from daemon.store.codec import dump, load
from daemon.store.schema import releases, scenarios
from daemon.store.schema import steps as table
from reef.errors import Conflict, NotFound, ReefError, Unavailable
from reef.recipe import Recipe
from tests.daemon.growth.house import House


class History:
    """Publishes into the rows only; each publication of one second is another release."""

    def __init__(self, home: House) -> None:
        self.home = home
        self.published: list[Publication] = []
        self.git = SimpleNamespace(drop_candidate=lambda scenario, step: None)

    async def publish(self, publication: Publication) -> Published:
        self.published.append(publication)
        await asyncio.sleep(0)
        release_id = f"r{len(self.published)}"
        row = {
            "scenario": publication.scenario,
            "step": 100 + len(self.published),
            "operation": publication.operation,
            "release_id": release_id,
            "candidate_id": publication.candidate_id,
            "content_id": publication.content_id,
            "recorded_at": "2026",
            "recipe": "r",
            "published": True,
        }
        await self.home.store.write(lambda connection: connection.execute(insert(releases), row))
        return Published(publication.scenario, row["step"], "promote", release_id, publication.content_id)


class Scenarios:
    """One scenario, until it is archived."""

    def __init__(self, home: House) -> None:
        self.home = home
        self.archived = False

    def get(self, name: str) -> None:
        if self.archived:
            raise NotFound(f"scenario `{name}` is archived")

    async def archive(self, name: str, close: Callable[[Connection], None]) -> tuple[str, ...]:
        self.get(name)
        await self.home.store.write(close)
        self.archived = True
        return ()


class Desk:
    def __init__(self, home: House, *, grows: bool = True) -> None:
        self.home = home
        self.history = History(home)
        self.scenarios = Scenarios(home)
        self.rooms: Any = SimpleNamespace(
            scenarios=self.scenarios,
            store=home.store,
            events=EventBus(),
            limits=SimpleNamespace(usd_per_day=1.0),
            cancelled=set(),
            history=self.history,
            recipe_of=lambda name: Recipe(),
        )
        head = SimpleNamespace(release_id="head", content_id="c")
        self.scenario: Any = SimpleNamespace(name="a", recipe="r", head=head, section=RecipeSection())
        self.review = Review(self.rooms, lambda name: grows)
        self.chronicle = Chronicle(self.rooms, self.scenario, home.lease("a"), 1)
        home.change(scenarios, "a", head_release_id="head", head_content_id="c")
        home.change(table, "a", base_release_id="head", base_content_id="c")

    def set(self, **values: Any) -> None:
        self.home.change(table, "a", **values)

    def step(self) -> Any:
        return self.home.store.read_now(lambda connection: steps.get(connection, "a", 1))

    def cancel(self) -> None:
        asyncio.run(self.review.cancel(self.scenario, 1))

    def run(self, go_on: Callable[[], Any] = lambda: None) -> None:
        """Run the step as far as `go_on` says."""

        class Run(StepRun):
            async def _go_on(self) -> None:
                result = go_on()
                if asyncio.iscoroutine(result):
                    await result

        asyncio.run(Run(self.rooms, self.scenario, self.chronicle.lease, 1, lambda: False).run())


def breaks(error: Exception) -> Callable[[], None]:
    def go_on() -> None:
        raise error

    return go_on


@pytest.fixture
def desk(home: House) -> Desk:
    return Desk(home)


class TestCancelling:
    def test_a_step_that_waits_is_over_at_once(self, desk: Desk) -> None:
        desk.set(state="waiting", waits_for="money", allowed_usd=0.5)
        desk.cancel()
        row = desk.step()
        assert (row["state"], row["outcome"], row["waits_for"]) == ("done", "skip", None)
        assert row["decision"] == "cancelled by a person"
        listed = desk.home.store.read_now(lambda connection: catalog.row_at(connection, "a", 1))
        assert load(listed["metrics"])["selection"]["outcome"] == "skip"
        assert desk.rooms.cancelled == set()

    def test_where_nothing_grows_any_step_is(self, home: House) -> None:
        desk = Desk(home, grows=False)
        desk.set(state="evaluating", cancel_asked=True)
        desk.cancel()
        row = desk.step()
        assert (row["state"], row["outcome"], row["cancel_asked"]) == ("done", "skip", False)

    def test_a_running_one_is_marked_for_who_runs_it(self, desk: Desk) -> None:
        desk.set(state="evaluating")
        desk.cancel()
        assert desk.step()["cancel_asked"]
        assert desk.rooms.cancelled == {("a", 1)}
        desk.rooms.cancelled.clear()  # a restart
        desk.run(breaks(Stopped("the step was cancelled")))
        row = desk.step()
        assert (row["state"], row["outcome"], row["cancel_asked"]) == ("done", "skip", False)

    @pytest.mark.parametrize("state", ["committing", "waiting"])
    def test_it_is_not_published_nor_left_to_a_person(self, desk: Desk, state: str) -> None:
        desk.set(state="deciding")
        desk.cancel()
        desk.run(lambda: desk.chronicle.save(state))
        assert desk.step()["outcome"] == "skip"

    def test_an_error_on_the_way_out_leaves_no_mark(self, desk: Desk) -> None:
        desk.set(state="evaluating")
        desk.cancel()
        desk.run(breaks(ReefError("the upstream is down")))
        assert desk.step()["outcome"] == "skip"
        assert desk.rooms.cancelled == set()

    def test_one_that_runs_again_is_not_cancelled(self, desk: Desk) -> None:
        desk.set(state="done", outcome="error", cancel_asked=True)
        desk.rooms.cancelled.add(("a", 1))
        asyncio.run(desk.review.run_again(desk.scenario, 1))
        assert not desk.step()["cancel_asked"]
        assert desk.rooms.cancelled == set()

    @pytest.mark.parametrize("values", [{"state": "done"}, {"state": "waiting", "waits_for": "review"}])
    def test_what_is_decided_cannot_be(self, desk: Desk, values: dict[str, Any]) -> None:
        desk.set(**values)
        with pytest.raises(Conflict, match="cannot be cancelled"):
            desk.cancel()


def test_where_nothing_grows_no_step_is_let_run(home: House) -> None:
    desk = Desk(home, grows=False)
    desk.set(state="waiting", waits_for="money", allowed_usd=0.5)
    with pytest.raises(Conflict, match="does not grow"):
        asyncio.run(desk.review.run_again(desk.scenario, 1))
    assert desk.step()["state"] == "waiting"


def test_of_two_that_let_a_step_run_one_does(desk: Desk) -> None:
    desk.set(state="done", outcome="error")

    async def go() -> list[Any]:
        both = (desk.review.run_again(desk.scenario, 1) for _ in range(2))
        return await asyncio.gather(*both, return_exceptions=True)

    assert [type(result) for result in asyncio.run(go())] == [type(None), Conflict]


def test_a_step_that_runs_is_not_reset_by_a_late_press(desk: Desk) -> None:
    """What the second press had seen is over when it writes."""
    desk.set(state="done", outcome="error", candidate_id="x")

    def start(connection: Connection) -> None:
        connection.execute(update(table).where(table.c.scenario == "a").values(state="committing"))

    async def go() -> None:
        first = asyncio.create_task(desk.review.run_again(desk.scenario, 1))
        second = asyncio.create_task(desk.review.run_again(desk.scenario, 1))
        await first
        await desk.home.store.write(start)
        with pytest.raises(Conflict):
            await second

    asyncio.run(go())
    assert desk.step()["state"] == "committing"


class TestPromoting:
    @pytest.fixture
    def waits(self, desk: Desk) -> Desk:
        desk.set(
            state="waiting",
            waits_for="review",
            pending=True,
            candidate_id="x",
            content_id="y",
            reason="why",
            metrics="{}",
        )
        return desk

    def test_twice_at_once_is_once(self, waits: Desk) -> None:
        async def go() -> list[Any]:
            both = (waits.review.promote(waits.scenario, "x") for _ in range(2))
            return await asyncio.gather(*both, return_exceptions=True)

        first, second = asyncio.run(go())
        assert first.release_id == "r1"
        assert isinstance(second, NotFound), second
        assert len(waits.history.published) == 1

    @pytest.mark.parametrize("decides", ["promote", "checkout"])
    def test_what_is_archived_meanwhile_serves_nothing_more(self, waits: Desk, decides: str) -> None:
        words = ("x",) if decides == "promote" else ("x", "y")

        async def go() -> list[Any]:
            late = getattr(waits.review, decides)(waits.scenario, *words)
            return await asyncio.gather(waits.review.archive(waits.scenario), late, return_exceptions=True)

        _, promoted = asyncio.run(go())
        assert isinstance(promoted, NotFound)
        assert waits.history.published == []
        assert waits.step()["outcome"] == "skip"

    @pytest.mark.parametrize("decides", ["promote", "checkout"])
    def test_what_is_being_promoted_is_archived_after_it(self, waits: Desk, decides: str) -> None:
        words = ("x",) if decides == "promote" else ("x", "y")

        async def go() -> None:
            await asyncio.gather(
                getattr(waits.review, decides)(waits.scenario, *words), waits.review.archive(waits.scenario)
            )

        asyncio.run(go())
        assert waits.step()["outcome"] == "select", "it was closed by whoever published it"

    @pytest.mark.parametrize("decides", ["promote", "reject", "recover"])
    def test_the_history_tells_what_was_decided_and_no_more_why_it_waited(
        self, waits: Desk, decides: str
    ) -> None:
        selection = {
            "policy": "sequential",
            "outcome": "inconclusive",
            "reason": "fewer than five gate tasks",
        }
        measured = {"published": False, "wins": 2, "losses": 0, "ties": 0, "selection": selection}
        waits.set(metrics=dump(measured))
        row = history_row(waits.step(), "2026", "why", measured)
        waits.home.write(lambda connection: catalog.add(connection, row))
        if decides == "reject":
            asyncio.run(waits.review.reject(waits.scenario, "x", "not like this"))
            expected = ("reject", "rejected by a person: not like this")
        else:
            with pytest.MonkeyPatch.context() as patch:
                if decides == "recover":
                    patch.setattr(waits.review, "_close", _full_disk)
                    with pytest.raises(Unavailable):
                        asyncio.run(waits.review.promote(waits.scenario, "x"))
                else:
                    asyncio.run(waits.review.promote(waits.scenario, "x"))
            asyncio.run(waits.review.recover())
            expected = ("select", "promoted by a person, as step 101")
            told = waits.history.published[0].metrics
            assert told is not None
            assert told["selection"]["reason"] == "promoted by a person, from step 1"
            assert (told["published"], told["wins"]) == (True, 2)
        found = waits.home.store.read_now(lambda connection: catalog.row_at(connection, "a", 1))
        assert found is not None
        metrics = load(found["metrics"])
        assert (metrics["selection"]["outcome"], metrics["selection"]["reason"]) == expected
        assert metrics == measured | {"selection": metrics["selection"]}, "what the gate measured stays"
        assert not found["pending"]

    def test_again_after_it_could_not_be_closed_publishes_nothing(self, waits: Desk) -> None:
        async def go() -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(waits.review, "_close", _full_disk)
                with pytest.raises(Unavailable):
                    await waits.review.promote(waits.scenario, "x")
            with pytest.raises(NotFound):
                await waits.review.reject(waits.scenario, "x", "")

        asyncio.run(go())
        assert waits.step()["outcome"] == "select"
        assert len(waits.history.published) == 1


async def _full_disk(*_: object) -> None:
    raise Unavailable("the disk is full")


def test_what_ends_in_an_error_was_not_selected(desk: Desk) -> None:
    """Whatever the gate had said before it was to be published."""
    metrics = {"selection": {"policy": "sequential", "outcome": "select", "reason": "better"}}
    asyncio.run(desk.chronicle.save("committing", metrics=metrics, outcome="select", decision="better"))
    asyncio.run(desk.chronicle.finish("error", "it could not be finished: no room"))
    selection = load(desk.step()["metrics"])["selection"]
    assert selection == {
        "policy": "sequential",
        "outcome": "error",
        "reason": "it could not be finished: no room",
    }
