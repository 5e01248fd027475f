"""A transaction of the writer.

On SQLite it is begun and committed on the driver: what SQLAlchemy does around each of both costs more than
they do. What runs inside may use SQLAlchemy all the same, which then joins the transaction that it finds.
"""

import sqlite3
from typing import Protocol

from sqlalchemy import Connection

from daemon.store.engine import driver_of


class Undoable(Protocol):
    """What was begun, and ends one way or the other."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


def begin(connection: Connection) -> Undoable:
    """Begin a transaction that may write. Errors of the driver come as they are."""
    driver = driver_of(connection)
    return _OnDriver(connection, driver) if isinstance(driver, sqlite3.Connection) else connection.begin()


class _OnDriver:
    def __init__(self, connection: Connection, driver: sqlite3.Connection) -> None:
        self._connection = connection
        self._driver = driver
        driver.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        if self._connection.in_transaction():
            self._connection.commit()
        else:
            self._driver.commit()

    def rollback(self) -> None:
        if self._connection.in_transaction():
            self._connection.rollback()
        else:
            self._driver.rollback()
