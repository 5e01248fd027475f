"""A store that failed is asked again by a real write, by one at a time and not all the time."""

import asyncio

import pytest
from sqlalchemy import Connection, func, select, text

from daemon.store import probe
from daemon.store.schema import pieces
from daemon.store.store import Store
from reef.errors import Unavailable


def pages(store: Store, most: int) -> None:
    """Let the database have no more pages than these (or than it has)."""
    store.writer.submit(
        lambda connection: connection.exec_driver_sql(f"PRAGMA max_page_count={most}")
    ).result(9)


def fill(store: Store) -> None:
    pages(store, 1)
    with pytest.raises(Unavailable, match="full"):
        store.writer.submit(probe.put).result(9)


def small(connection: Connection) -> None:
    connection.execute(text("INSERT INTO tags VALUES ('s', 'small', 'r')"))


def outcomes(store: Store, callers: int) -> list[BaseException | None]:
    async def all_at_once() -> list[BaseException | None]:
        return await asyncio.gather(*(store.gate.ready() for _ in range(callers)), return_exceptions=True)

    return asyncio.run(all_at_once())


def test_one_that_never_failed_is_not_asked(store: Store) -> None:
    fill_level = store.size_bytes()
    assert outcomes(store, 3) == [None] * 3
    assert (store.size_bytes(), store.gate.trouble) == (fill_level, None)


def test_it_leaves_nothing_behind(store: Store) -> None:
    asyncio.run(store.gate.prove())
    assert store.read_now(lambda c: c.execute(select(func.count()).select_from(pieces)).scalar()) == 0


def test_nobody_asks_again_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    pages(store, 10**6)
    (refused,) = outcomes(store, 1)
    assert isinstance(refused, Unavailable)
    assert ("full" in refused.message, refused.hint[:9]) == (True, "free some")
    assert 1 <= refused.retry_after_s <= probe.EVERY_S
    monkeypatch.setattr(probe, "EVERY_S", 0.0)
    assert outcomes(store, 1) == [None]
    assert store.gate.trouble is None


def test_those_who_ask_at_once_wait_for_one_proof(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    proofs: list[str] = []
    put = probe.put
    monkeypatch.setattr(probe, "put", lambda connection: (proofs.append("put"), put(connection)))

    async def two() -> None:
        await asyncio.gather(store.gate.prove(), store.gate.prove())

    asyncio.run(two())
    assert proofs == ["put"]


def test_a_small_write_that_goes_through_shows_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "EVERY_S", 0.0)
    fill(store)
    store.writer.submit(small).result(9)
    assert store.writer.last_error is None
    assert store.gate.trouble is store.writer.failed is not None
    assert all(isinstance(each, Unavailable) for each in outcomes(store, 2))


def test_one_proves_while_the_others_are_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "EVERY_S", 0.0)
    fill(store)
    pages(store, 10**6)
    first, *others = outcomes(store, 5)
    assert first is None
    assert all(isinstance(each, Unavailable) for each in others)
    (*again, _) = outcomes(store, 2)  # what the first has to store may not be stored yet, or ever
    assert again == [None]
    failed = store.writer.failed
    store.gate.works(Unavailable("another"))
    assert store.writer.failed is failed is not None
    store.gate.works(failed)
    assert outcomes(store, 5) == [None] * 5


def test_a_look_lets_one_through_and_a_new_failure_voids_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "EVERY_S", 0.0)
    fill(store)
    pages(store, 10**6)
    proofs: list[str] = []
    put = probe.put
    monkeypatch.setattr(probe, "put", lambda connection: (proofs.append("put"), put(connection)))

    async def look() -> None:
        store.gate.look_again()
        while store.gate.trouble is not None:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)  # the proof may have shown it just now, and end with this
        store.gate.look_again()
        assert len(asyncio.all_tasks()) == 1, "it is shown: nobody has to look again"

    asyncio.run(look())
    assert proofs == ["put"]
    monkeypatch.setattr(probe, "EVERY_S", 60.0)
    first, second = outcomes(store, 2)
    assert (first, type(second), proofs) == (None, Unavailable, ["put"])
    monkeypatch.setattr(probe, "EVERY_S", 0.0)
    asyncio.run(look())
    monkeypatch.setattr(probe, "put", put)
    monkeypatch.setattr(probe, "SIZE", 2**20)  # more than what the proofs left free
    fill(store)
    monkeypatch.setattr(probe, "EVERY_S", 60.0)
    assert store.gate.trouble is store.gate.failed is not None
    assert [type(each) for each in outcomes(store, 1)] == [Unavailable]


def test_a_proof_whose_asker_leaves_is_taken_back(store: Store) -> None:
    async def leave() -> None:
        asking = asyncio.ensure_future(store.gate.prove())
        while not rows(store):
            await asyncio.sleep(0)
            if rows(store) or asking.done():
                break
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await store.write(lambda connection: None)
        await store.write(lambda connection: None)

    for _ in range(5):
        asyncio.run(leave())
    assert rows(store) == 0


def rows(store: Store) -> int:
    return int(store.read_now(lambda c: c.execute(select(func.count()).select_from(pieces)).scalar_one()))
