"""The same messages over and over: each request costs what the one before it cost, and all is marked as a
plain reading of the rule would have it."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, update

from daemon.records.query import find, to_wire
from daemon.records.retries import counting
from daemon.store.engine import driver_of
from daemon.store.schema import records
from reef.ids import now
from tests.daemon.records.desk import Desk

BEGAN = now() - timedelta(days=1)


@dataclass(frozen=True)
class Turn:
    """Milliseconds from a common moment; `over` after it began."""

    began: int
    over: int
    complete: bool
    run: str | None
    session: str | None

    def is_alike(self, other: "Turn") -> bool:
        return bool((self.run and self.run == other.run) or (self.session and self.session == other.session))

    def in_place_of(self, other: "Turn") -> bool:
        """Whether it counts instead of `other`, if it is of later than that or that came to no answer."""
        settled = other.began + (other.over if other.complete else 0)
        return self.complete and self.is_alike(other) and settled <= self.began + 1


def by_the_rule(turns: list[Turn]) -> list[int | None]:
    """For each turn the number of the one that counts instead; `turns` are in the order of their storing."""
    after: dict[int, int] = {}
    for mine, turn in enumerate(turns):
        counted = [each for each in range(mine) if each not in after]
        if turn.complete:
            after |= {each: mine for each in counted if turn.in_place_of(turns[each])}
        elif later := [each for each in counted if turns[each].in_place_of(turn)]:
            after[mine] = later[-1]

    def last(mine: int) -> int:
        return last(after[mine]) if mine in after else mine

    return [last(mine) if mine in after else None for mine in range(len(turns))]


def told(desk: Desk, receipts: list[str]) -> list[str | None]:
    def look(connection: Connection) -> list[str | None]:
        return [to_wire(connection, find(connection, receipt))["superseded_by"] for receipt in receipts]

    return desk.store.read_now(look)


def store(desk: Desk, text: str, turns: list[Turn], together: int) -> list[str | None]:
    """Store them, so many at once; returns what is told of each, as numbers of turns."""
    drafts = [
        desk.draft(
            text,
            created_at=BEGAN + timedelta(milliseconds=turn.began),
            total_ms=float(turn.over),
            status="complete" if turn.complete else "failed",
            run=turn.run,
            session=turn.session,
        )
        for turn in turns
    ]

    async def append() -> None:
        for start in range(0, len(drafts), together):
            await asyncio.gather(*(desk.book.append(draft) for draft in drafts[start : start + together]))

    desk.run(append())
    numbers: dict[str | None, Any] = {draft.id: number for number, draft in enumerate(drafts)}
    return [numbers[name] if name else None for name in told(desk, [draft.id for draft in drafts])]


some = st.builds(
    Turn,
    st.integers(0, 60),
    st.integers(0, 30),
    st.sampled_from([True, True, False]),
    st.sampled_from(["r1", "r2", None]),
    st.sampled_from(["s1", "s2", None]),
)
of_one_session = st.builds(
    Turn, st.integers(0, 6).map((10).__mul__), st.integers(0, 3).map((10).__mul__), st.booleans(), st.none(),
    st.just("s"),
)  # fmt: skip


def test_all_is_marked_by_the_rule(desk: Desk) -> None:
    texts = map(str, count())

    @settings(deadline=None, max_examples=100)
    @given(st.lists(some, max_size=14), st.sampled_from([1, 4, 14]))
    def check(turns: list[Turn], together: int) -> None:
        assert store(desk, next(texts), turns, together) == by_the_rule(turns)

    check()


def test_in_a_session_what_was_asked_again_is_superseded_by_one_that_counts(desk: Desk) -> None:
    """The contract, whatever came between: no order of marks is in it."""
    texts = map(str, count())

    @settings(deadline=None, max_examples=100)
    @given(st.lists(of_one_session, max_size=10))
    def check(turns: list[Turn]) -> None:
        found = store(desk, next(texts), turns, 1)
        for mine, turn in enumerate(turns):
            others = [
                other
                for number, other in enumerate(turns)
                if number != mine and (number > mine or not turn.complete)
            ]
            assert (found[mine] is not None) == any(other.in_place_of(turn) for other in others)
            if (counts := found[mine]) is not None:
                assert turns[counts].in_place_of(turn)
                assert found[counts] is None

    check()


@contextmanager
def steps_of(driver: sqlite3.Connection) -> Iterator[Callable[[], int]]:
    """How many steps SQLite's machine took meanwhile, in tens."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    driver.set_progress_handler(step, 10)
    yield lambda: steps
    driver.set_progress_handler(None, 10)


def cost(desk: Desk, **how: Any) -> int:
    """Steps of storing one more."""
    writer = desk.store.writer.submit(driver_of).result(10)
    with steps_of(writer) as steps:
        desk.record(run="r", **how)
    return steps()


@pytest.mark.parametrize("before", ["complete", "failed", "at once"])
@pytest.mark.parametrize("status", ["complete", "failed"])
def test_a_request_costs_the_same_after_hundreds_of_its_like(desk: Desk, before: str, status: str) -> None:
    moments = (BEGAN + timedelta(seconds=second) for second in count())

    def ask(times: int) -> None:
        for _ in range(times):
            if before == "at once":
                began = next(moments)
                desk.record(run="r", created_at=began, total_ms=5.0)
                desk.record(run="r", created_at=began, total_ms=5.0)
            else:
                desk.record(run="r", created_at=next(moments), status=before, total_ms=5.0)

    ask(3)
    if before == "failed" and status == "complete":  # one that counts settles all that failed, once
        desk.record(run="r", created_at=next(moments))
    few = cost(desk, created_at=next(moments), status=status)
    ask(150)
    if before == "failed" and status == "complete":
        desk.record(run="r", created_at=next(moments))
    many = cost(desk, created_at=next(moments), status=status)
    assert many <= 1.5 * few + 5


def test_the_one_that_counts_is_found_as_fast_after_hundreds(desk: Desk) -> None:
    receipts = [desk.record(session="s", created_at=BEGAN + timedelta(seconds=n)) for n in range(200)]

    def look(connection: Connection) -> int:
        with steps_of(driver_of(connection)) as steps:
            for receipt in receipts[:-1]:
                assert counting(connection, receipt, "x") == receipts[-1]
        return steps()

    assert desk.store.read_now(look) < 20 * len(receipts)
    assert told(desk, receipts) == [*[receipts[-1]] * 199, None]


def test_any_number_of_failures_is_settled_by_one_answer(desk: Desk) -> None:
    def allow(most: int) -> None:
        def set_limit(connection: Connection) -> None:
            driver_of(connection).setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, most)

        desk.store.writer.submit(set_limit).result(10)

    failed = [
        desk.record(run="r", status="failed", created_at=BEGAN + timedelta(seconds=n)) for n in range(120)
    ]
    report = desk.report(*failed[:3], score=0, judge=False)
    allow(100)
    answer = desk.draft(run="r", created_at=BEGAN + timedelta(hours=1))
    desk.run(desk.book.append(answer))
    assert told(desk, failed) == [answer.id] * 120
    assert sorted(answer.superseded) == sorted((report, receipt) for receipt in failed[:3])


def test_a_late_report_is_told_which_one_counts_now(desk: Desk) -> None:
    first, *_, last = [desk.record(session="s", created_at=BEGAN + timedelta(seconds=n)) for n in range(5)]
    report = desk.lesson(first)
    assert desk.verdict(report) == ("ineligible", "superseded")
    (known,) = [each for each in desk.listed() if each["agent_record_id"] == report]
    assert last in known["pairs"][0]["message"]


def test_equals_in_one_commit_that_took_no_time_do_not_end_each_other(desk: Desk) -> None:
    turns = [Turn(0, 0, True, "r", None)] * 6
    found = store(desk, "quick", turns, 6)
    assert found == [5, 5, 5, 5, 5, None]


def test_marks_in_a_circle_end_nothing(desk: Desk) -> None:
    """Turns of no time that shared a commit could end each other once."""
    first, second = (desk.record(run=run) for run in ("r1", "r2"))

    def mark(connection: Connection) -> None:
        for one, other in ((first, second), (second, first)):
            connection.execute(update(records).where(records.c.id == one).values(superseded_by=other))

    desk.store.writer.submit(mark).result(10)
    assert told(desk, [first, second]) == [second, first]
