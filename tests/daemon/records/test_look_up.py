"""Looking one record up: as SQLAlchemy gives it, by its own scenario only, and of one moment."""

import sqlite3

import pytest
from sqlalchemy import Connection, delete, select

from daemon.records.query import find, story, to_wire
from daemon.store.schema import pieces, records
from reef.errors import NotFound, Unavailable
from tests.daemon.records.desk import Desk


@pytest.mark.parametrize("stream", [True, False, None])
def test_a_row_is_what_sqlalchemy_gives(desk: Desk, stream: bool | None) -> None:
    receipt = desk.record(stream=stream, total_ms=3, session="s")

    def both(connection: Connection) -> tuple[object, object]:
        usual = connection.execute(select(records).where(records.c.id == receipt)).mappings().one()
        return dict(usual), find(connection, receipt)

    usual, found = desk.store.read_now(both)
    assert found == usual
    assert [type(value) for value in found.values()] == [type(value) for value in usual.values()]


def test_a_record_is_found_in_its_own_scenario_only(desk: Desk) -> None:
    receipt = desk.record()
    found = desk.store.read_now(lambda connection: find(connection, receipt, "city"))
    assert found["id"] == receipt
    for name, scenario in ((receipt, "other"), ("nothing", None), ("nothing", "city")):
        with pytest.raises(NotFound, match="no record"):
            desk.store.read_now(lambda connection, n=name, s=scenario: find(connection, n, s))


def test_what_is_read_after_it_is_of_the_same_moment(desk: Desk) -> None:
    receipt = desk.record("Is it cold?")

    def look(connection: Connection) -> dict[str, object]:
        row = find(connection, receipt)
        desk.store.writer.submit(lambda other: other.execute(delete(pieces))).result(10)
        return to_wire(connection, row, payload=True) | story(connection, row)

    told = desk.store.read_now(look)
    assert told["payload"]["messages"] == [{"role": "user", "content": "Is it cold?"}]
    with pytest.raises(Unavailable, match="lost"):
        desk.store.read_now(lambda connection: to_wire(connection, find(connection, receipt), payload=True))


def test_a_database_that_cannot_be_read_is_said(desk: Desk) -> None:
    receipt = desk.record()
    desk.store.writer.submit(lambda connection: connection.exec_driver_sql("DROP TABLE records")).result(10)
    with pytest.raises(Unavailable, match="cannot be read") as caught:
        desk.store.read_now(lambda connection: find(connection, receipt))
    assert isinstance(caught.value.__cause__, sqlite3.Error)
