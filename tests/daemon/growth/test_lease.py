"""One daemon at a time grows a scenario; one that was replaced can write nothing more."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from daemon.growth import lease as module
from daemon.growth.lease import LEASE_S, Lease, LostLease, prove, take
from daemon.store.schema import metadata
from reef.ids import now


class Clock:
    def __init__(self) -> None:
        self.moment: datetime = now()

    def pass_(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "now", lambda: made.moment)
    return made


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.connect() as opened:
        yield opened
    engine.dispose()


def test_a_free_lease_is_taken_and_kept(connection: Connection, clock: Clock) -> None:
    mine = take(connection, "s", "me")
    assert mine == Lease("s", "me", 1)
    prove(connection, mine)
    assert take(connection, "s", "you") is None
    assert take(connection, "elsewhere", "you") == Lease("elsewhere", "you", 1)


def test_proving_extends_it(connection: Connection, clock: Clock) -> None:
    mine = take(connection, "s", "me")
    assert mine is not None
    for _ in range(3):
        clock.pass_(LEASE_S * 0.9)
        prove(connection, mine)
    assert take(connection, "s", "you") is None


def test_an_expired_lease_goes_to_the_next(connection: Connection, clock: Clock) -> None:
    mine = take(connection, "s", "me")
    assert mine is not None
    clock.pass_(LEASE_S + 1)
    prove(connection, mine)  # nobody took it meanwhile
    clock.pass_(LEASE_S + 1)
    yours = take(connection, "s", "you")
    assert yours == Lease("s", "you", 2)
    with pytest.raises(LostLease, match="took over"):
        prove(connection, mine)
    prove(connection, yours)


def test_a_restarted_holder_takes_it_at_once_from_its_former_self(
    connection: Connection, clock: Clock
) -> None:
    before = take(connection, "s", "me")
    after = take(connection, "s", "me")
    assert before is not None
    assert after == Lease("s", "me", 2)
    with pytest.raises(LostLease):
        prove(connection, before)


MOVES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["take", "prove"]), st.sampled_from([0, 10, 59, 61])),
    max_size=30,
)


@given(MOVES)
@settings(max_examples=60)
def test_there_is_never_more_than_one_holder(moves: list[tuple[str, str, int]]) -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    clock = Clock()
    held: dict[str, Lease] = {}
    with pytest.MonkeyPatch.context() as patch, engine.connect() as connection:
        patch.setattr(module, "now", lambda: clock.moment)
        for who, move, seconds in moves:
            clock.pass_(seconds)
            if move == "take" and (got := take(connection, "s", who)) is not None:
                held[who] = got
            able = [one for one in held.values() if proves(connection, one)]
            assert len(able) <= 1
            assert all(one.epoch == max(other.epoch for other in held.values()) for one in able)
    engine.dispose()


def proves(connection: Connection, lease: Lease) -> bool:
    """Whether it may write, asked without extending it."""
    savepoint = connection.begin_nested()
    try:
        prove(connection, lease)
    except LostLease:
        return False
    finally:
        savepoint.rollback()
    return True
