"""The writer groups what waits into one commit; each caller is answered for itself."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text

from daemon.store import writer
from daemon.store.engine import BUSY_TIMEOUT_MS, driver_of
from daemon.store.store import Store
from reef.errors import Unavailable
from tests.e2e.running import wait_for


def put(connection: Connection, tag: str) -> str:
    connection.execute(text("INSERT INTO tags VALUES ('s', :tag, 'r')"), {"tag": tag})
    return tag


def tags(store: Store) -> list[str]:
    return store.read_now(
        lambda connection: list(connection.execute(text("SELECT tag FROM tags ORDER BY tag")).scalars())
    )


def test_what_waits_shares_a_commit(store: Store) -> None:
    commits = 0

    def count(_connection: object) -> None:
        nonlocal commits
        commits += 1

    event.listen(store.writer._engine, "commit", count)
    gate = threading.Event()
    first = store.writer.submit(lambda _connection: gate.wait(10))
    waiting = [store.writer.submit(lambda connection, n=n: put(connection, f"t{n:02}")) for n in range(20)]
    gate.set()
    assert [future.result(10) for future in waiting] == [f"t{n:02}" for n in range(20)]
    assert first.result(10)
    assert commits <= 3
    assert len(tags(store)) == 20


def test_at_a_pace_a_commit_waits_for_those_who_are_under_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PACE_S", 60.0)
    monkeypatch.setattr(writer, "GATHER_S", 0.3)
    groups: list[int] = []

    def note(_: Connection, items: Sequence[int]) -> Sequence[int]:
        groups.append(len(items))
        return items

    store.writer.submit_together(note, 0).result(10)
    store.writer.under_way = lambda: 3
    for future in [store.writer.submit_together(note, n) for n in range(3)]:
        future.result(10)
    assert groups == [1, 3]


def test_nobody_waits_alone_or_where_commits_are_rare(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PACE_S", 60.0)
    monkeypatch.setattr(writer, "GATHER_S", 30.0)
    store.writer.under_way = lambda: 1
    for n in range(3):
        store.writer.submit(lambda connection, n=n: put(connection, f"t{n}")).result(10)
    store.writer.under_way = lambda: 9
    monkeypatch.setattr(writer, "PACE_S", 0.0)
    store.writer.submit(lambda connection: put(connection, "t9")).result(10)


def test_one_that_fails_takes_nothing_else_with_it(store: Store) -> None:
    def fail(connection: Connection) -> None:
        put(connection, "lost")
        raise ValueError("no")

    async def all_at_once() -> list[object]:
        jobs = [
            store.write(lambda connection: put(connection, "a")),
            store.write(fail),
            store.write(lambda connection: put(connection, "b")),
        ]
        return await asyncio.gather(*jobs, return_exceptions=True)

    first, second, third = asyncio.run(all_at_once())
    assert (first, third) == ("a", "b")
    assert isinstance(second, ValueError)
    assert tags(store) == ["a", "b"]


def test_those_that_go_together_run_as_one_and_fail_one_by_one(store: Store) -> None:
    calls: list[list[str]] = []

    def put_all(connection: Connection, names: Sequence[str]) -> list[str]:
        calls.append(list(names))
        for name in names:
            put(connection, name)
        if "bad" in names:
            raise ValueError("bad")
        return [name.upper() for name in names]

    gate, begun = threading.Event(), threading.Event()
    holds = store.writer.submit(lambda _connection: (begun.set(), gate.wait(10)))
    assert begun.wait(10)
    waiting = [store.writer.submit_together(put_all, name) for name in ("a", "bad", "b")]
    between = store.writer.submit(lambda connection: put(connection, "between"))
    last = store.writer.submit_together(put_all, "c")
    gate.set()
    assert [waiting[0].result(10), waiting[2].result(10)] == ["A", "B"]
    with pytest.raises(ValueError, match="bad"):
        waiting[1].result(10)
    assert (between.result(10), last.result(10)) == ("between", "C")
    assert holds.result(10)
    assert calls == [["a", "bad", "b"], ["a"], ["bad"], ["b"], ["c"]]
    assert tags(store) == ["a", "b", "between", "c"]


def test_what_is_told_as_not_written_is_not_there(store: Store) -> None:
    """One of them is at fault, so they are tried one by one; then the disk is full."""

    def put_all(connection: Connection, names: Sequence[str]) -> list[str]:
        for name in names:
            put(connection, name)
        if names == ["full"]:
            raise sqlite3.OperationalError("database or disk is full")
        if "bad" in names:
            raise ValueError("bad")
        return list(names)

    gate, begun = threading.Event(), threading.Event()
    store.writer.submit(lambda _connection: (begun.set(), gate.wait(10)))
    assert begun.wait(10)
    waiting = [store.writer.submit_together(put_all, name) for name in ("a", "bad", "full")]
    gate.set()
    for future in waiting:
        with pytest.raises(Unavailable, match="full"):
            future.result(10)
    assert tags(store) == []


def test_who_has_gone_is_not_told(store: Store) -> None:
    gate, begun = threading.Event(), threading.Event()

    async def leave() -> None:
        store.writer.ask_together(lambda connection, _: (begun.set(), gate.wait(10))[:1], None)

    asyncio.run(leave())  # its loop is closed before the commit
    assert begun.wait(10)
    gate.set()
    store.writer.submit(lambda connection: put(connection, "after")).result(10)
    assert tags(store) == ["after"]


def test_alone_in_a_commit_one_that_fails_leaves_nothing(store: Store) -> None:
    def fail(connection: Connection) -> None:
        put(connection, "lost")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.writer.submit(fail).result(10)
    assert tags(store) == []


def test_what_was_acknowledged_is_there_after_reopening(tmp_path: Path) -> None:
    store = Store.at(tmp_path / "reef.db")
    store.writer.submit(lambda connection: put(connection, "kept")).result(10)
    store.close()
    again = Store.at(tmp_path / "reef.db")
    assert tags(again) == ["kept"]
    again.close()


def test_a_closed_store_refuses(store: Store) -> None:
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.writer.submit(lambda connection: put(connection, "late")).result(10)


def test_a_reader_cannot_write(store: Store) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        store.read_now(lambda connection: put(connection, "sneaky"))


def test_a_full_disk_is_said_and_is_over_when_there_is_room(tmp_path: Path) -> None:
    store = Store.at(tmp_path / "reef.db")
    limit = "PRAGMA max_page_count=%d"

    def resize(pages: int) -> None:
        with store._writing.connect() as connection:
            connection.connection.dbapi_connection.execute(limit % pages)

    pages = store.read_now(lambda connection: connection.execute(text("PRAGMA page_count")).scalar())
    resize(pages + 1)
    with pytest.raises(Unavailable, match="full") as caught:
        store.writer.submit(lambda connection: put(connection, "x" * 100_000)).result(10)
    assert "disk space" in caught.value.hint
    resize(1_000_000)
    store.writer.submit(lambda connection: put(connection, "fits")).result(10)
    assert tags(store) == ["fits"]
    store.close()


def test_a_caller_that_left_stops_nobody(store: Store) -> None:
    async def scene() -> None:
        gate, begun = threading.Event(), threading.Event()
        holds = store.writer.submit(lambda _connection: (begun.set(), gate.wait(10))[1])
        assert begun.wait(10)  # what follows is in a later commit
        leaving = asyncio.create_task(store.write(lambda connection: put(connection, "left")))
        await asyncio.sleep(0)
        staying = asyncio.create_task(store.write(lambda connection: put(connection, "stayed")))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert await staying == "stayed"
        assert holds.result(10)

    asyncio.run(scene())
    assert tags(store) == ["stayed"]


def test_a_bug_in_a_job_stops_nobody(store: Store) -> None:
    def break_the_connection(connection: Connection) -> None:
        connection.connection.dbapi_connection.close()

    with pytest.raises(Unavailable):
        store.writer.submit(break_the_connection).result(10)
    store.writer.submit(lambda connection: put(connection, "after")).result(10)
    assert tags(store) == ["after"]


def test_a_checkpoint_that_fails_stops_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def execute(self, statement: str) -> None:
            raise sqlite3.OperationalError("database or disk is full")

    class Connected:
        connection = type("Pooled", (), {"dbapi_connection": Full()})

        def close(self) -> None: ...

    monkeypatch.setattr(store.writer, "_connection", Connected())
    store.writer._checkpoint("PASSIVE")
    assert "full" in (store.writer.last_error or "")
    store.writer.submit(lambda connection: put(connection, "after")).result(10)
    assert store.writer.last_error is None


@contextmanager
def long_read(store: Store) -> Iterator[None]:
    """Somebody reads all the while what is in the log."""
    with closing(sqlite3.connect(str(store._writing.url.database))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tags").fetchone()
        yield
        reader.rollback()


def checkpoints(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool, int]]:
    """Of each checkpoint that ends from now on: its mode, whether it was done, and how long the next
    statement waits for others, in ms."""
    ended: list[tuple[str, bool, int]] = []
    original = store.writer._checkpoint

    def checkpoint(mode: str) -> bool:
        done = original(mode)
        (waits,) = driver_of(store.writer._connected()).execute("PRAGMA busy_timeout").fetchone()
        ended.append((mode, done, waits))
        return done

    monkeypatch.setattr(store.writer, "_checkpoint", checkpoint)
    return ended


def test_no_checkpoint_waits_for_a_long_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waited would end when the reader does, and all writes with it: here, after the test."""
    monkeypatch.setattr(writer, "IDLE_S", 0.05)
    monkeypatch.setattr(writer, "PASSIVE_EVERY_S", 0.0)
    monkeypatch.setattr(writer, "BUSY_TIMEOUT_MS", 600_000)
    ended = checkpoints(store, monkeypatch)
    driver_of(store.writer._connected()).execute("PRAGMA busy_timeout=600000")
    with long_read(store):
        store.writer.submit(lambda connection: put(connection, "a")).result(10)
        wait_for(
            lambda: [mode for mode, *_ in ended].count("TRUNCATE") >= 2 or None, "another try", seconds=10
        )
        store.writer.submit(lambda connection: put(connection, "b")).result(10)
        assert {each for each in ended if each[0] == "TRUNCATE"} == {("TRUNCATE", False, 600_000)}
        assert ("PASSIVE", True, 600_000) in ended
    log = Path(f"{store._writing.url.database}-wal")
    wait_for(lambda: log.stat().st_size == 0 or None, "the log to be folded back", seconds=10)
    wait_for(lambda: not store.writer._written or None, "rest", seconds=10)
    assert ended[-1] == ("TRUNCATE", True, 600_000)


def test_closing_does_not_wait_for_a_long_read(store: Store) -> None:
    store.writer.submit(lambda c: driver_of(c).execute("PRAGMA busy_timeout=600000")).result(10)
    with long_read(store):
        store.writer.submit(lambda connection: put(connection, "a")).result(10)
        store.close()
        assert not store.writer._thread.is_alive()


def test_a_write_waits_for_another_programs_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a checkpoint, which does not."""
    monkeypatch.setattr(writer, "IDLE_S", 0.05)
    ended = checkpoints(store, monkeypatch)
    with closing(sqlite3.connect(str(store._writing.url.database))) as other:
        store.writer.submit(lambda connection: put(connection, "a")).result(10)
        wait_for(lambda: ended or None, "a checkpoint", seconds=10)
        assert ended[0][2] == BUSY_TIMEOUT_MS
        other.execute("BEGIN IMMEDIATE")
        waiting = store.writer.submit(lambda connection: put(connection, "b"))
        wait_for(lambda: waiting.running() or None, "the write to begin", seconds=10)
        other.rollback()
        assert waiting.result(10) == "b"


def test_who_comes_while_it_closes_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is put when the thread has looked for the last time."""
    jobs, thread = store.writer._jobs, store.writer._thread

    class Slow:
        def put(self, job: object) -> None:
            if job is not None:
                store.close()
                thread.join(10)
            jobs.put(job)

        def __getattr__(self, name: str) -> object:
            return getattr(jobs, name)

    monkeypatch.setattr(store.writer, "_jobs", Slow())
    late = store.writer.submit(lambda connection: put(connection, "late"))
    with pytest.raises(Unavailable, match="closed"):
        late.result(10)


def test_who_is_behind_the_end_is_told(store: Store) -> None:
    gate, begun = threading.Event(), threading.Event()
    holds = store.writer.submit(lambda _connection: (begun.set(), gate.wait(10))[1])
    assert begun.wait(10)
    closes = threading.Thread(target=store.writer.close)
    before = store.writer.waiting
    closes.start()
    wait_for(lambda: store.writer.waiting > before or None, "the end to be asked for", seconds=10)
    late = [store.writer.submit(lambda connection: put(connection, "late")) for _ in range(3)]
    late[1].cancel()
    gate.set()
    assert holds.result(10)
    for future in (late[0], late[2]):
        with pytest.raises(Unavailable, match="closed"):
            future.result(10)
    closes.join(10)


def test_a_task_that_is_behind_the_end_is_told(store: Store) -> None:
    async def scene() -> None:
        store.close()
        with pytest.raises(Unavailable, match="closed"):
            await asyncio.wait_for(store.write(lambda connection: put(connection, "late")), 10)

    asyncio.run(scene())
