"""Every pair gets a verdict with its reason; a report waits for an exchange that still runs."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from daemon.records.batches import report_state
from daemon.records.judging import Judge
from daemon.store.schema import records
from recipes.record import Record
from reef.feedback import Exchange, Report, Verdict
from reef.ids import new_receipt
from tests.daemon.records.desk import Desk


def test_a_lesson_waits_for_a_batch(desk: Desk) -> None:
    assert desk.verdict(desk.lesson(desk.record())) == ("eligible", "waiting_for_batch")


@pytest.mark.parametrize("kind", ["title", "compaction", "count_tokens", "episode"])
def test_what_is_no_turn_teaches_nothing(desk: Desk, kind: str) -> None:
    assert desk.verdict(desk.lesson(desk.record(kind=kind))) == ("ineligible", "not_a_turn")


@pytest.mark.parametrize("status", ["aborted", "failed"])
def test_half_an_answer_teaches_nothing(desk: Desk, status: str) -> None:
    assert desk.verdict(desk.lesson(desk.record(status=status))) == ("ineligible", "not_complete")


def test_a_superseded_one_teaches_nothing(desk: Desk) -> None:
    old, new = desk.record(), desk.record()
    change = update(records).where(records.c.id == old).values(superseded_by=new)
    desk.run(desk.store.write(lambda connection: connection.execute(change)))
    assert desk.verdict(desk.lesson(old)) == ("ineligible", "superseded")


@pytest.mark.parametrize(
    ("metadata", "state"),
    [
        ({"training": {"eligible": False}}, ("ineligible", "opted_out")),
        ({"training": {"eligible": True}}, ("eligible", "waiting_for_batch")),
        ({"training": "no"}, ("eligible", "waiting_for_batch")),
    ],
)
def test_a_report_may_opt_out(desk: Desk, metadata: dict[str, Any], state: tuple[str, str]) -> None:
    assert desk.verdict(desk.lesson(desk.record(), metadata=metadata)) == state


def test_a_middling_score_is_no_lesson(desk: Desk) -> None:
    assert desk.verdict(desk.report(desk.record(), score=0.5)) == ("ineligible", "score_not_a_lesson")


def test_a_recipe_that_only_records(desk: Desk) -> None:
    desk.recipe = Record()
    assert desk.verdict(desk.lesson(desk.record())) == ("ineligible", "recipe_does_not_learn")


def test_each_pair_is_judged_for_itself(desk: Desk) -> None:
    good, title = desk.record(), desk.record(kind="title")
    assert desk.pairs(desk.lesson(good, title)) == {
        good: ("eligible", "waiting_for_batch"),
        title: ("ineligible", "not_a_turn"),
    }


def test_a_recipes_own_reason_is_kept(desk: Desk) -> None:
    class Picky(Record):
        def judge(self, report: Report, exchange: Exchange) -> Verdict:
            return Verdict("never", "x:too_warm", f"{exchange.prompt} {exchange.answer}")

    desk.recipe = Picky()
    report_id = desk.lesson(desk.record())
    assert desk.verdict(report_id) == ("ineligible", "x:too_warm")
    (listed,) = desk.listed(report_id=report_id)
    assert listed["pairs"][0]["message"] == "How warm is it? 70 F"


class TestRunning:
    def test_it_waits_and_is_judged_when_the_stream_ends(self, desk: Desk) -> None:
        draft = desk.draft(stream=False)
        desk.book.opened(draft.id, "city")
        report_id = desk.lesson(draft.id)
        assert desk.verdict(report_id) == ("pending", "waiting_for_record")
        assert draft.id in desk.book.awaited
        desk.run(desk.book.append(draft))
        desk.book.closed(draft.id)
        desk.run(desk.judge.stored(draft.id))
        assert desk.verdict(report_id) == ("eligible", "waiting_for_batch")

    def test_one_that_broke_off_teaches_nothing(self, desk: Desk) -> None:
        draft = desk.draft(status="aborted")
        desk.book.opened(draft.id, "city")
        report_id = desk.lesson(draft.id)
        desk.run(desk.book.append(draft))
        desk.book.closed(draft.id)
        desk.run(desk.judge.stored(draft.id))
        assert desk.verdict(report_id) == ("ineligible", "not_complete")

    def test_a_report_whose_daemon_died_is_judged_at_the_next_start(self, desk: Desk) -> None:
        running, stored = desk.draft(), desk.record()
        desk.book.opened(running.id, "city")
        lost, unjudged = desk.lesson(running.id), desk.lesson(stored, judge=False)
        assert desk.verdict(unjudged) == ("pending", "waiting_for_record")
        after = Desk(desk.store)
        after.run(after.judge.recover())
        assert after.verdict(lost) == ("ineligible", "lost")
        assert after.verdict(unjudged) == ("eligible", "waiting_for_batch")

    def test_judging_twice_changes_nothing(self, desk: Desk) -> None:
        report_id = desk.lesson(desk.record())
        before = desk.listed()
        desk.run(desk.judge.judge(report_id))
        desk.run(desk.judge.recover())
        assert desk.listed() == before

    def test_an_exchange_stored_between_report_and_verdict(self, desk: Desk) -> None:
        """The record lands while its report is judged: whoever comes second sees it."""
        draft = desk.draft()
        desk.book.opened(draft.id, "city")
        report_id = desk.lesson(draft.id, judge=False)

        async def scene(judge: Judge) -> None:
            async def ends() -> None:
                await desk.book.append(draft)
                desk.book.closed(draft.id)
                await judge.stored(draft.id)

            await asyncio.gather(judge.judge(report_id), ends())

        asyncio.run(scene(desk.judge))
        assert desk.verdict(report_id) == ("eligible", "waiting_for_batch")


ORDER = ("consumed", "eligible", "pending", "ineligible")


@given(st.sets(st.sampled_from(ORDER), min_size=1))
def test_a_reports_state_is_its_furthest_pair(states: set[str]) -> None:
    found = report_state(states)
    assert found in states
    assert all(ORDER.index(found) <= ORDER.index(one) for one in states)


@given(st.sets(st.sampled_from(ORDER)), st.sampled_from(ORDER))
def test_another_pair_never_sets_a_state_back(states: set[str], more: str) -> None:
    before, after = report_state(states), report_state(states | {more})
    assert not states or ORDER.index(after) <= ORDER.index(before)


def test_a_receipt_nobody_knows_is_no_reference(desk: Desk) -> None:
    desk.book.opened(receipt := new_receipt(), "city")
    desk.book.closed(receipt)
    assert desk.book.running_in(receipt) is None
