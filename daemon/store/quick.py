"""Statements of the hot path, compiled once.

On SQLite they run on the driver: what SQLAlchemy does for each execution costs several times what SQLite does
for a row. Elsewhere they run as any other. Values are what the driver takes (bytes, numbers, text, None).
"""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Delete, Insert, Select, Update
from sqlalchemy.dialects import sqlite

from daemon.store.engine import driver_of


class Quick:
    """One statement. Its parameters are `names`; a row that lacks one has NULL there.

    Errors of the driver come as they are (`sqlite3.Error`), which the writer knows as well.
    """

    def __init__(self, statement: Insert | Update | Delete | Select[Any], names: Sequence[str] = ()) -> None:
        self._statement = statement
        self._names = list(names) or None

    def many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run it once for each row."""
        if (driver := _driver(connection)) is None:
            connection.execute(self._statement, list(rows))
            return
        text, names = self._compiled
        driver.executemany(text, [tuple(map(row.get, names)) for row in rows])

    def scalar(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        """The first column of its first row, or None."""
        if (driver := _driver(connection)) is None:
            return connection.execute(self._statement, dict(values)).scalar()
        text, names = self._compiled
        row = driver.execute(text, tuple(map(values.get, names))).fetchone()
        return None if row is None else row[0]

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """All its rows."""
        if (driver := _driver(connection)) is None:
            return [tuple(row) for row in connection.execute(self._statement, dict(values))]
        text, names = self._compiled
        return driver.execute(text, tuple(map(values.get, names))).fetchall()

    def column(self, connection: Connection, name: str, values: Sequence[Any]) -> list[Any]:
        """The first column of all rows, for a statement whose only parameter is the list `name`."""
        if (driver := _driver(connection)) is None:
            return list(connection.execute(self._statement, {name: list(values)}).scalars())
        text, _ = self._compiled
        marks = ",".join("?" * len(values))
        return [
            row[0] for row in driver.execute(text.replace(f"(__[POSTCOMPILE_{name}])", f"({marks})"), values)
        ]

    @cached_property
    def _compiled(self) -> tuple[str, tuple[str, ...]]:
        compiled = self._statement.compile(dialect=sqlite.dialect(), column_keys=self._names)
        return str(compiled), tuple(compiled.positiontup or ())


def _driver(connection: Connection) -> sqlite3.Connection | None:
    """The driver's own connection, where it is SQLite's."""
    driver = driver_of(connection)
    return driver if isinstance(driver, sqlite3.Connection) else None
