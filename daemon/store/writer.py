"""The one writer: a thread that groups what waits into one commit, and so one fsync.

A job is a function of a connection; those of one kind that wait side by side run as one, since a statement
for many rows costs little more than one for a single row. What runs as one can be undone as one, and where it
fails each job is tried by itself, so one that fails takes nothing else with it. A caller is answered after
the commit that holds its job, never before.
"""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from daemon.store.engine import BUSY_TIMEOUT_MS, driver_of, is_sqlite
from daemon.store.transaction import begin
from reef.errors import Unavailable

T = TypeVar("T")
Item = TypeVar("Item")
Together = Callable[[Connection, Sequence[Item]], Sequence[T]]
"""Work on several items; returns a result for each. It may be called again with fewer."""

GROUP_LIMIT = 256
GATHER_S = 0.002
"""How long a commit waits for more to take along, where others are under way."""
PACE_S = 0.005
"""Commits that are further apart than this wait for nobody."""
IDLE_S = 1.0
"""After this long without writes the write-ahead log is folded back and truncated, and as often after it
while somebody reads what is in it."""
PASSIVE_EVERY_S = 2.0


Waiting: TypeAlias = "Future[Any] | asyncio.Future[Any]"
"""Who waits for a job: any thread, or a task of an event loop."""


@dataclass(slots=True, eq=False)
class _Job:
    work: Together[Any, Any]
    item: Any
    waiting: Waiting

    def is_wanted(self) -> bool:
        """Whether somebody waits for it still; from now on it is too late to call it off."""
        if isinstance(self.waiting, Future):
            return self.waiting.set_running_or_notify_cancel()
        return not self.waiting.cancelled()


@dataclass(slots=True)
class _Done:
    """How a job ended: `result`, or what is wrong."""

    waiting: Waiting
    result: Any = None
    problem: BaseException | None = None

    def tell(self) -> None:
        if self.waiting.done():  # its task was cancelled meanwhile
            return
        if self.problem is None:
            self.waiting.set_result(self.result)
        else:
            self.waiting.set_exception(self.problem)


class Writer:
    """Owns the writing connection. `submit` may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reef-writer", daemon=True)
        self._connection: Connection | None = None
        self._ended = False
        self._written = False
        self._committed_at = 0.0
        self.under_way: Callable[[], int] = lambda: 0
        """How many may soon have something to write, those that wait already among them."""
        self.last_error: str | None = None
        """What the last commit, or folding back of the log, failed with."""
        self.failed: Unavailable | None = None
        """What a commit failed with, until a record is stored again (`Gate.works`): a small write may go
        through, and a larger one not."""
        self.failed_at = 0.0
        """When that was last so, by `time.monotonic`."""
        self._thread.start()

    def submit(self, work: Callable[[Connection], T]) -> "Future[T]":
        """Run `work` in the next commit; the future ends when that commit is durable.

        Raises (through the future): what `work` raised, or `Unavailable` when the store cannot be
        written.
        """
        return self.submit_together(lambda connection, _: (work(connection),), None)

    def submit_together(self, work: Together[Item, T], item: Item) -> "Future[T]":
        """As `submit`, for work that takes the items of several callers at once: those that wait in a row
        with the same `work` are handed to it together."""
        future: Future[T] = Future()
        self._put(_Job(work, item, future))
        return future

    def ask(self, work: Callable[[Connection], T]) -> "asyncio.Future[T]":
        """As `submit`, from a task."""
        return self.ask_together(lambda connection, _: (work(connection),), None)

    def ask_together(self, work: Together[Item, T], item: Item) -> "asyncio.Future[T]":
        """As `submit_together`, from a task: the loop is woken once for all that one commit ends."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Job(work, item, future))
        return future

    def _put(self, job: _Job) -> None:
        self._jobs.put(job)
        if self._ended:  # asked after it is put: whoever comes second, the thread or this, finds it
            self._refuse_rest()

    def _refuse_rest(self) -> None:
        """Tell those whom no commit will take up any more."""
        closed = Unavailable("the store is closed", hint="the daemon is stopping")
        with suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None and job.is_wanted():
                    _tell([_Done(job.waiting, problem=closed)])

    @property
    def waiting(self) -> int:
        """Jobs that no commit has taken up yet."""
        return self._jobs.qsize()

    def close(self) -> None:
        """Finish what waits, then stop. What comes later is refused with `Unavailable`."""
        self._jobs.put(None)
        self._thread.join(timeout=30)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended = True
            self._refuse_rest()

    def _work(self) -> None:
        last_passive = time.monotonic()
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_S if self._written else None)
            except queue.Empty:
                self._written = not self._checkpoint("TRUNCATE")
                continue
            if job is not None and self._more_will_come():
                time.sleep(GATHER_S)
            group, stop = self._gather(job)
            if group:
                self._commit(group)
                self._written = True
                self._committed_at = time.monotonic()
            del job, group  # while this waits for more, it holds on to nothing
            if stop:
                self._checkpoint("TRUNCATE")
                self._disconnect()
                return
            if time.monotonic() - last_passive > PASSIVE_EVERY_S:
                self._checkpoint("PASSIVE")
                last_passive = time.monotonic()

    def _more_will_come(self) -> bool:
        """Whether to wait is worth it: a commit for several costs little more than one for a single job. If
        commits are rare, or all who are under way wait already, it is not."""
        if time.monotonic() - self._committed_at > PACE_S:
            return False
        return self._jobs.qsize() + 1 < min(self.under_way(), GROUP_LIMIT)

    def _gather(self, first: _Job | None) -> tuple[list[_Job], bool]:
        if first is None:
            return [], True
        group = [first]
        while len(group) < GROUP_LIMIT:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def _commit(self, group: list[_Job]) -> None:
        wanted = [job for job in group if job.is_wanted()]
        if not wanted:
            return
        try:
            done = self._committed(wanted)
            self.last_error = None
        except Exception as error:  # whatever it is, those who wait are told, and the next group is tried
            self._disconnect()
            failure = cannot_write(error)
            self.last_error = failure.message
            self.failed, self.failed_at = failure, time.monotonic()
            done = [_Done(job.waiting, problem=failure) for job in wanted]
        _tell(done)

    def _committed(self, wanted: list[_Job]) -> list[_Done]:
        """Run the jobs and commit, all at once: what is told of any of them is true of the store."""
        connection = self._connected()
        units = [list(jobs) for _, jobs in groupby(wanted, key=lambda job: job.work)]
        if len(units) == 1:  # undoing it undoes all there is: no savepoint is needed
            whole = begin(connection)
            done, problem = _run(connection, units[0])
            if problem is None:
                whole.commit()
                return done
            whole.rollback()
            if len(wanted) == 1:
                return [_Done(wanted[0].waiting, problem=problem)]
            units = [[job] for job in wanted]
        done = []
        whole = begin(connection)
        for jobs in units:
            done += _attempt(connection, jobs)
        whole.commit()
        return done

    def _connected(self) -> Connection:
        """The writing connection; it is kept, since getting one costs as much as a small commit."""
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _disconnect(self) -> None:
        """Let go of the connection, and so of a transaction that was not committed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError, sqlite3.Error):
                connection.close()

    def _checkpoint(self, mode: str) -> bool:
        """Fold the log back into the database; returns whether that is over. It is not where somebody still
        reads what is in the log, or writes: nobody is waited for, since every write would wait too."""
        if not is_sqlite(self._engine):
            return True
        try:
            driver = driver_of(self._connected())
            try:
                driver.execute("PRAGMA busy_timeout=0")
                busy, *_ = driver.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            finally:
                driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        except (SQLAlchemyError, sqlite3.Error) as error:
            self._disconnect()
            self.last_error = cannot_write(error).message
            return True
        return not busy


def _attempt(connection: Connection, jobs: list[_Job]) -> list[_Done]:
    """Run jobs of one kind as one, or, where that fails, each by itself; inside a transaction."""
    savepoint = connection.begin_nested()
    done, problem = _run(connection, jobs)
    if problem is None:
        savepoint.commit()
        return done
    savepoint.rollback()
    if len(jobs) == 1:
        return [_Done(jobs[0].waiting, problem=problem)]
    return [each for job in jobs for each in _attempt(connection, [job])]


def _run(connection: Connection, jobs: list[_Job]) -> tuple[list[_Done], BaseException | None]:
    """How jobs of one kind end, or what is wrong with one of them. Raises where the store itself failed."""
    try:
        results = jobs[0].work(connection, [job.item for job in jobs])
    except (DBAPIError, sqlite3.Error) as error:
        if _all_are_lost(error):
            raise
        return [], cannot_write(error)
    except Exception as error:
        return [], error
    return [_Done(job.waiting, result) for job, result in zip(jobs, results, strict=True)], None


def _tell(done: list[_Done]) -> None:
    """Tell those who wait how their jobs ended; each event loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[_Done]] = {}
    for each in done:
        if isinstance(each.waiting, Future):
            each.tell()
        else:
            loops.setdefault(each.waiting.get_loop(), []).append(each)
    for loop, theirs in loops.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_tell_here, theirs)


def _tell_here(done: list[_Done]) -> None:
    for each in done:
        each.tell()


def _all_are_lost(error: DBAPIError | sqlite3.Error) -> bool:
    """Whether it is the store that failed, and no job of its own fault."""
    said = str(error.orig if isinstance(error, DBAPIError) else error)
    gone = isinstance(error, DBAPIError) and error.connection_invalidated
    return gone or "disk" in said or "readonly" in said


def cannot_write(error: BaseException) -> Unavailable:
    """The store's failure in the user's words."""
    cause = str(getattr(error, "orig", None) or error)
    hints = {
        "I/O": "the disk may be full (`df -h`), or failing",
        "full": "free some disk space; nothing acknowledged was lost",
        "readonly": "the home must be writable by the user who runs the daemon",
        "locked": "another program holds the database; close it",
    }
    hint = next((text for word, text in hints.items() if word in cause), "see `reef logs`")
    return Unavailable(f"the store cannot be written: {cause}", hint=hint, retry_after_s=5)
