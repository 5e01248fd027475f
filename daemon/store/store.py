"""The store as the rooms above use it: `read` and `write`, each a function of a connection."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from daemon.store.engine import is_sqlite, reader_engine, sqlite_url, writer_engine
from daemon.store.gate import Gate
from daemon.store.migrate import migrate
from daemon.store.writer import Item, Together, Writer, cannot_write
from reef.errors import ReefError, Unavailable

T = TypeVar("T")

log = logging.getLogger("reef.store")


class Store:
    """Opened once per daemon. Reads run in threads; writes are grouped by the one writer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._writing = _opened(url)
        self.reader: Engine = reader_engine(url)
        self.writer = Writer(self._writing)
        self.gate = Gate(self.writer)

    @classmethod
    def at(cls, path: Path) -> "Store":
        """The SQLite file at `path`, made if it is not there."""
        return cls(sqlite_url(path))

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the next grouped commit and return when it is durable."""
        return await self.writer.ask(work)

    async def write_together(self, work: Together[Item, T], item: Item) -> T:
        """As `write`, for work that takes the items of all who wait at once (see `Writer`)."""
        return await self.writer.ask_together(work, item)

    async def write_anyway(self, work: Callable[[Connection], T]) -> T:
        """As `write`; a caller that is cancelled meanwhile waits for the commit, and is cancelled after it.

        `write` may drop what no commit has taken up when its caller is cancelled.
        """
        written = self.writer.ask(work)
        cancelled: asyncio.CancelledError | None = None
        while not written.done():
            try:
                await asyncio.wait([written])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            if (lost := written.exception()) is not None:
                log.warning("a write of a cancelled task failed: %s", lost)
            raise cancelled
        return written.result()

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(self.read_now, work)

    def read_now(self, work: Callable[[Connection], T]) -> T:
        """Run a read in the calling thread."""
        try:
            with self.reader.connect() as connection:
                return work(connection)
        except (SQLAlchemyError, sqlite3.Error) as error:  # of the driver where a statement is `Quick`
            raise Unavailable(f"the store cannot be read: {error}", hint="see `reef logs`") from error

    def size_bytes(self) -> int | None:
        """How large the database is; None where it is not a file of ours."""
        if not is_sqlite(self._writing) or not self._writing.url.database:
            return None
        base = Path(self._writing.url.database)
        files = (base, base.with_name(base.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def is_there(self) -> bool:
        """Whether the database still lies where it was opened; one that is no file of ours always does."""
        if not is_sqlite(self._writing) or not self._writing.url.database:
            return True
        return Path(self._writing.url.database).exists()

    @property
    def kind(self) -> str:
        return self._writing.dialect.name

    def check(self) -> None:
        """Raise `Unavailable` when the store cannot be read."""
        self.read_now(lambda connection: connection.execute(text("SELECT 1")))

    def close(self) -> None:
        self.writer.close()
        self.reader.dispose()
        self._writing.dispose()


def _opened(url: str) -> Engine:
    """The writer's engine, on a database that is up to date."""
    engine = writer_engine(url)
    try:
        migrate(engine)
    except OperationalError as error:
        engine.dispose()
        raise cannot_write(error) from error
    except DatabaseError as error:
        engine.dispose()
        raise _damaged(engine, error) from error
    except ReefError:
        engine.dispose()
        raise
    return engine


def _damaged(engine: Engine, error: DatabaseError) -> ReefError:
    return ReefError(
        f"{engine.url.database} cannot be opened\n{error.orig}",
        hint="put a copy of it back, or move it away to begin with an empty one",
    )
