"""The store as the rooms above use it: `read` and `write`, each a function of a connection."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from pathlib import Path
from time import monotonic
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from daemon.store import probe
from daemon.store.engine import is_sqlite, reader_engine, sqlite_url, writer_engine
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
        self._proving = False
        self._proved_at = 0.0
        """When the last proof was over, by `time.monotonic`; `_shown_at` of the last that went well."""
        self._shown_at = 0.0
        self._one_may = False
        """Whether nobody was let through yet by the last proof."""
        self._looking: asyncio.Task[None] | None = None

    @classmethod
    def at(cls, path: Path) -> "Store":
        """The SQLite file at `path`, made if it is not there."""
        return cls(sqlite_url(path))

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the next grouped commit and return when it is durable."""
        return await self._ask(work)

    async def write_together(self, work: Together[Item, T], item: Item) -> T:
        """As `write`, for work that takes the items of all who wait at once (see `Writer`)."""
        return await self.writer.ask_together(work, item)

    async def write_anyway(self, work: Callable[[Connection], T]) -> T:
        """As `write`; a caller that is cancelled meanwhile waits for the commit, and is cancelled after it.

        `write` may drop what no commit has taken up when its caller is cancelled.
        """
        written = self._ask(work)
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

    def _ask(self, work: Callable[[Connection], T]) -> "asyncio.Future[T]":
        return self.writer.ask_together(lambda connection, _: (work(connection),), None)

    async def prove(self) -> None:
        """Show by a write that the store takes writes. Raises `Unavailable` where it does not."""
        self._proving = True
        try:
            await self.write(probe.put)
            await self.write(probe.take_back)
            self._shown_at, self._one_may = monotonic(), True
        finally:
            self._proved_at = monotonic()
            self._proving = False

    async def ready(self) -> None:
        """Return where the store takes writes, as far as is known. Of those who ask while it does not, one
        proves every few seconds whether it does again, and is let through; the others are refused until
        what that one has to store is stored (`works`): there may be room for a proof and for no more.

        Raises:
            Unavailable: what it last failed with.
        """
        failed = self.writer.failed
        if failed is None:
            return
        if self._is_shown() and self._one_may:  # by a look at the status
            self._one_may, self._proved_at = False, monotonic()
            return
        if self._proving or (wait := self._wait_s()) > 0:
            seconds = probe.EVERY_S if self._proving else wait
            raise Unavailable(failed.message, hint=failed.hint, retry_after_s=max(1, ceil(seconds)))
        await self.prove()
        self._one_may = False

    def works(self, failed: Unavailable) -> None:
        """What was asked for after `failed` is stored."""
        if self.writer.failed is failed:
            log.info("the store takes writes again")
            self.writer.failed = None

    def look_again(self) -> None:
        """Prove in the background, where it is time, whether a store that failed takes writes again."""
        if self.writer.failed is None or self._proving or self._is_shown() or self._wait_s() > 0:
            return
        self._proving = True
        self._looking = asyncio.create_task(self._look(), name="store")

    async def _look(self) -> None:
        with suppress(Unavailable):
            await self.prove()

    def _is_shown(self) -> bool:
        """Whether it was proved since the last failure."""
        return self._shown_at > self.writer.failed_at

    def _wait_s(self) -> float:
        """Until the next proof."""
        return max(self.writer.failed_at, self._proved_at) + probe.EVERY_S - monotonic()

    @property
    def trouble(self) -> Unavailable | None:
        """What keeps it from being written, as far as is known."""
        writer = self.writer
        if writer.failed is not None:
            return None if self._is_shown() else writer.failed
        return None if writer.last_error is None else Unavailable(writer.last_error, hint="see `reef logs`")

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
