"""Statements of the hot path, compiled once.

On SQLite they run on the driver: what SQLAlchemy does for each execution costs several times what SQLite does
for a row. Elsewhere they run as any other. Values are what the driver takes (bytes, numbers, text, None).
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
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

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Its first row by the names of its columns, as SQLAlchemy gives it, or None.

        A read that goes on after it sees the database as this did.
        """
        if (driver := _driver(connection)) is None:
            found = connection.execute(self._statement, dict(values)).first()
            return None if found is None else found._asdict()
        row = self._read(connection, driver, values).fetchone()
        return None if row is None else self._mapped(row)

    def mappings(self, connection: Connection, values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """All its rows, each as `first` gives one."""
        if (driver := _driver(connection)) is None:
            return [row._asdict() for row in connection.execute(self._statement, dict(values))]
        return list(map(self._mapped, self._read(connection, driver, values)))

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

    def _read(
        self, connection: Connection, driver: sqlite3.Connection, values: Mapping[str, Any]
    ) -> sqlite3.Cursor:
        if not connection.in_transaction():
            connection.begin()
        text, names = self._compiled
        return driver.execute(text, tuple(map(values.get, names)))

    def _mapped(self, row: tuple[Any, ...]) -> dict[str, Any]:
        named = dict(zip(self._columns, row, strict=True))
        for name, convert in self._converted:
            named[name] = convert(named[name])
        return named

    @cached_property
    def _compiled(self) -> tuple[str, tuple[str, ...]]:
        compiled = self._statement.compile(dialect=sqlite.dialect(), column_keys=self._names)
        return str(compiled), tuple(compiled.positiontup or ())

    @cached_property
    def _columns(self) -> list[str]:
        return [column.name for column in self._statement.exported_columns]

    @cached_property
    def _converted(self) -> list[tuple[str, Callable[[Any], Any]]]:
        """The columns whose values the driver gives in another form, such as truth as a number."""
        dialect = sqlite.dialect()
        processors = {
            column.name: column.type.dialect_impl(dialect).result_processor(dialect, None)
            for column in self._statement.exported_columns
        }
        return [(name, convert) for name, convert in processors.items() if convert is not None]


def _driver(connection: Connection) -> sqlite3.Connection | None:
    """The driver's own connection, where it is SQLite's."""
    driver = driver_of(connection)
    return driver if isinstance(driver, sqlite3.Connection) else None
