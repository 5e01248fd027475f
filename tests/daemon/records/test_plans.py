"""What is looked for among millions of records is found by an index that leads straight to it."""

import re
from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from daemon.records.book import _RELEASE_OF
from daemon.records.listing import Filter, listing
from daemon.records.query import find, story
from daemon.records.references import by_any_name, resolve, scenario_of
from daemon.records.retries import _COUNTING, _FIRST_BEFORE, _begun_by, _complete_since
from daemon.records.used import used_since
from daemon.store.engine import driver_of
from daemon.store.quick import Quick
from tests.daemon.records.desk import Desk

_STRAIGHT = {
    "records": r"INDEX \w+ \((id=|(run|session)=|scenario=\? AND conversation=|created_at>)",
    "aliases": r"(PRIMARY KEY|INDEX aliases_by_record) \(",
    "pairs": r"INDEX \w+ \(",
    "reports": r"INDEX \w+ \(",
}


def plans(desk: Desk, look: Callable[[Connection], object]) -> list[str]:
    """How SQLite goes about each query of `look`, a line for each step."""
    asked: list[str] = []

    def explain(connection: Connection) -> list[str]:
        driver = driver_of(connection)
        driver.set_trace_callback(asked.append)
        look(connection)
        driver.set_trace_callback(None)
        return [
            row[-1]
            for statement in asked
            if statement.startswith("SELECT")
            for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]

    found = desk.store.read_now(explain)
    assert found
    return found


def test_no_look_up_goes_through_a_whole_scenario(desk: Desk) -> None:
    receipt = desk.record(run="r1", session="s1", conversation="c1")
    report = desk.lesson(receipt)

    def look(connection: Connection) -> None:
        row = find(connection, receipt)
        (name,) = story(connection, row)["aliases"]
        assert by_any_name(connection, name, "city") == receipt
        assert by_any_name(connection, name, None) == receipt
        for reference in ("run:r1", "session:s1", name):
            assert resolve(connection, desk.book, "city", [reference]) == [receipt]
            assert scenario_of(connection, desk.book, reference) == "city"
        find(connection, report)
        used_since(connection, "city", "2026-01-01")
        connection.execute(_RELEASE_OF, {"scenario": "city", "conversation": "c1"})

    for plan in plans(desk, look):
        if plan.startswith(("SCAN", "SEARCH")):
            table = plan.split()[1]
            assert re.match(rf"SEARCH {table} USING (COVERING )?{_STRAIGHT[table]}", plan), plan


@pytest.mark.parametrize("scenario", [None, "city"])
def test_a_page_of_records_is_not_sorted_out_of_all_of_them(desk: Desk, scenario: str | None) -> None:
    receipts = [desk.record() for _ in range(3)]
    for after in (None, receipts[1]):
        for descending in (True, False):
            wanted = Filter(scenario=scenario, descending=descending, after=after)
            for plan in plans(desk, lambda connection, wanted=wanted: listing(connection, wanted)):
                assert re.match(r"(SCAN|SEARCH) (records|pieces) USING ", plan), plan


_SHARED = ("run", "session", "conversation")
_BY_MESSAGES = "INDEX records_by_messages (scenario=? AND message_hash=? AND superseded_by=?"


@pytest.mark.parametrize(
    ("statement", "way"),
    [
        (_begun_by(_SHARED), f"{_BY_MESSAGES} AND created_at<?)"),
        (_begun_by(("session",)), f"{_BY_MESSAGES} AND created_at<?)"),
        (_complete_since(_SHARED), f"{_BY_MESSAGES} AND created_at>?)"),
        (_complete_since(("run",)), f"{_BY_MESSAGES} AND created_at>?)"),
        (_FIRST_BEFORE, f"{_BY_MESSAGES})"),
        (_COUNTING, "INDEX sqlite_autoindex_records_1 (id=?)"),
    ],
)
def test_a_retry_is_found_without_what_it_repeats_no_more(desk: Desk, statement: Quick, way: str) -> None:
    def explain(connection: Connection) -> list[str]:
        text, names = statement._compiled
        return [
            row[-1] for row in driver_of(connection).execute(f"EXPLAIN QUERY PLAN {text}", ["x"] * len(names))
        ]

    looks = [plan for plan in desk.store.read_now(explain) if " records " in plan]
    assert looks
    assert all(plan.endswith(way) for plan in looks), looks
