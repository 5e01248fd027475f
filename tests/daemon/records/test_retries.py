"""The same messages again: the last answer that was whole counts, and the others teach nothing."""

import json
from datetime import timedelta
from typing import Any

import pytest

from daemon.records.batches import consume
from daemon.records.query import find, to_wire
from daemon.records.retries import MessageNames
from reef.ids import now
from tests.daemon.records.desk import RECIPE, Desk


def superseded_by(desk: Desk, receipt: str) -> str | None:
    """The turn that a client is told to count instead."""
    wire = desk.store.read_now(lambda connection: to_wire(connection, find(connection, receipt)))
    return wire["superseded_by"]


@pytest.mark.parametrize("shared", [{"run": "r"}, {"session": "s"}, {"conversation": "h:1"}])
def test_a_retry_takes_the_place_of_all_before_it(desk: Desk, shared: dict[str, str]) -> None:
    first = desk.record(**shared)
    cut = desk.record(status="failed", **shared)
    second = desk.record(**shared)
    third = desk.record(**shared)
    assert [superseded_by(desk, each) for each in (first, cut, second, third)] == [third, third, third, None]


def test_the_verdicts_that_change_are_told(desk: Desk) -> None:
    first = desk.record(run="r")
    report = desk.lesson(first)
    assert desk.verdict(report)[0] == "eligible"
    again = desk.draft(run="r")
    desk.run(desk.book.append(again))
    assert list(again.superseded) == [(report, first)]
    assert desk.verdict(report) == ("ineligible", "superseded")
    last = desk.draft(run="r")
    desk.run(desk.book.append(last))
    assert list(last.superseded) == []


@pytest.mark.parametrize(
    "again",
    [
        {"run": "other"},
        {},
        {"run": "r", "text": "Another question"},
        {"run": "r", "status": "aborted"},
        {"run": "r", "scenario": "other"},
        {"run": "r", "kind": "episode"},
        {"run": "r", "dialect": "messages"},
    ],
)
def test_what_is_no_retry_of_it_leaves_it_alone(desk: Desk, again: dict[str, Any]) -> None:
    first = desk.record(run="r")
    desk.record(**again)
    assert superseded_by(desk, first) is None


def test_answers_that_were_asked_for_at_once_are_no_retries_of_each_other(desk: Desk) -> None:
    began = now()
    first = desk.record(run="r", created_at=began, total_ms=900.0)
    second = desk.record(run="r", created_at=began + timedelta(milliseconds=500), total_ms=100.0)
    assert [superseded_by(desk, each) for each in (first, second)] == [None, None]
    third = desk.record(run="r", created_at=began + timedelta(milliseconds=800), total_ms=100.0)
    assert [superseded_by(desk, each) for each in (first, second, third)] == [None, third, None]
    stale = desk.record(run="r", created_at=began, total_ms=5000.0)
    assert [superseded_by(desk, each) for each in (first, third, stale)] == [None, None, None]


def test_what_came_to_no_answer_is_a_retrys_predecessor_however_late_that_showed(desk: Desk) -> None:
    began = now()
    first = desk.record(run="r", status="aborted", created_at=began, total_ms=5000.0)
    second = desk.record(run="r", created_at=began + timedelta(milliseconds=900), total_ms=100.0)
    late = desk.record(run="r", status="failed", created_at=began + timedelta(milliseconds=300), total_ms=9e3)
    after = desk.record(run="r", status="aborted", created_at=began + timedelta(milliseconds=2000))
    assert [superseded_by(desk, each) for each in (first, late, second, after)] == [
        second,
        second,
        None,
        None,
    ]


def test_two_who_open_with_the_same_words_are_two(desk: Desk) -> None:
    first = desk.record(conversation="h:1", opens=True)
    desk.record(conversation="h:1", opens=True)
    assert superseded_by(desk, first) is None


def test_system_text_that_varies_is_no_difference(desk: Desk) -> None:
    asked = [{"system": f"billing {n}", "messages": [{"role": "user", "content": "hi"}]} for n in range(2)]
    first, second = (
        desk.record(session="s", dialect="messages", request=json.dumps(body).encode()) for body in asked
    )
    assert superseded_by(desk, first) == second


def test_what_differs_in_any_other_way_is_another_request() -> None:
    image = [{"role": "user", "content": [{"type": "image", "source": {"data": data}}]} for data in "ab"]
    bodies: list[dict[str, Any]] = [
        {"messages": [image[0]]},
        {"messages": [image[1]]},
        {"input": "go on", "previous_response_id": "1"},
        {"input": "go on", "previous_response_id": "2"},
        {"input": "go on"},
    ]
    assert len({MessageNames().name(body, lambda _: None) for body in bodies}) == len(bodies)
    assert all(MessageNames().name(body, lambda _: None) is None for body in ({"messages": []}, {}))


def test_reports_on_it_teach_nothing_any_more_unless_they_did(desk: Desk) -> None:
    first = desk.record(run="r")
    waiting, learnt = desk.lesson(first), desk.lesson(first)
    desk.run(desk.store.write(lambda connection: consume(connection, [learnt], RECIPE, 1)))
    second = desk.record(run="r")
    assert desk.verdict(waiting) == ("ineligible", "superseded")
    assert desk.verdict(learnt)[0] == "consumed"
    (told,) = [report for report in desk.listed() if report["agent_record_id"] == waiting]
    assert second in told["pairs"][0]["message"]
    assert desk.pairs(desk.lesson("run:r")) == {second: ("eligible", "waiting_for_batch")}


def test_a_body_nested_too_deeply_to_compare_is_stored_all_the_same(desk: Desk) -> None:
    deep = b'{"messages":[{"role":"user","content":' + b"[" * 900 + b"]" * 900 + b"}]}"
    first = desk.record(run="r", request=deep)
    desk.record(run="r", request=deep)
    assert desk.lesson(first)
