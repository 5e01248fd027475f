"""What is looked for among millions of records is found by an index that leads straight to it."""

import re
from typing import Any

from sqlalchemy import Connection, event

from daemon.records.query import find, story
from daemon.records.references import by_any_name, resolve, scenario_of
from tests.daemon.records.desk import Desk

_WANTED = {
    "records": r"records USING (COVERING )?INDEX \w+ \((id=|(run|session)=|scenario=\? AND conversation=)",
    "aliases": r"aliases USING (PRIMARY KEY|COVERING INDEX aliases_by_record) \(",
    "pairs": r"pairs USING (COVERING )?INDEX \w+ \(",
    "reports": r"reports USING (COVERING )?INDEX \w+ \(",
}


def test_no_look_up_goes_through_a_whole_scenario(desk: Desk) -> None:
    receipt = desk.record(run="r1", session="s1", conversation="c1")
    report = desk.lesson(receipt)
    asked: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, values: Any, *_more: object) -> None:
        if statement.startswith("SELECT"):
            asked.append((statement, values))

    def look(connection: Connection) -> None:
        row = find(connection, receipt)
        (name,) = story(connection, row)["aliases"]
        assert by_any_name(connection, name, "city") == receipt
        assert by_any_name(connection, name, None) == receipt
        for reference in ("run:r1", "session:s1", name):
            assert resolve(connection, desk.book, "city", [reference]) == [receipt]
            assert scenario_of(connection, desk.book, reference) == "city"
        find(connection, report)

    event.listen(desk.store.reader, "before_cursor_execute", note)
    desk.store.read_now(look)
    desk.run(desk.book.release_of("city", "c1"))
    event.remove(desk.store.reader, "before_cursor_execute", note)
    assert len(asked) >= 10

    def plans(connection: Connection) -> list[str]:
        return [
            row[-1]
            for statement, values in asked
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            if row[-1].startswith(("SCAN", "SEARCH"))
        ]

    for plan in desk.store.read_now(plans):
        table = plan.split()[1]
        assert re.match(f"SEARCH {_WANTED[table]}", plan), plan
