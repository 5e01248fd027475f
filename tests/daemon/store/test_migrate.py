"""Migrations: from nothing, twice, and from the future."""

import re
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from daemon.store import migrate
from daemon.store.engine import sqlite_url, writer_engine
from daemon.store.schema import aliases, holds, metadata, spending
from daemon.store.store import Store
from reef.errors import Unavailable

VERSIONS = Path(migrate.__file__).parent / "migrations" / "versions"


def test_the_migrations_make_the_schema(tmp_path: Path) -> None:
    Store.at(tmp_path / "reef.db").close()
    engine = writer_engine(sqlite_url(tmp_path / "reef.db"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
        assert connection.execute(text("PRAGMA auto_vacuum")).scalar() == 2
    engine.dispose()


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    def schema() -> list[tuple[object, ...]]:
        store = Store.at(tmp_path / "reef.db")
        found = schema_of(store)
        store.close()
        return found

    assert schema() == schema()


def test_the_revision_is_the_newest_file() -> None:
    found = [re.search(r'^revision = "(\d+)"', file.read_text(), re.M)[1] for file in VERSIONS.glob("m*.py")]
    assert max(found) == migrate.REVISION


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    store = Store.at(tmp_path / "reef.db")
    store.writer.submit(
        lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    ).result(10)
    store.close()
    with pytest.raises(Unavailable, match="newer than") as caught:
        Store.at(tmp_path / "reef.db")
    assert "REEF_HOME" in caught.value.hint


def schema_of(store: Store) -> list[tuple[object, ...]]:
    query = text("SELECT type, name, sql FROM sqlite_master ORDER BY name")
    return store.read_now(lambda connection: [tuple(row) for row in connection.execute(query)])


def at_revision(url: str, revision: str, *statements: str) -> None:
    """Make a database as an earlier Reef left it."""
    engine = writer_engine(url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "REVISION", revision)
        migrate.migrate(engine)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.mark.parametrize(
    "change",
    ["SELECT 1", "ALTER TABLE holds ADD COLUMN epoch INTEGER NOT NULL DEFAULT 7"],
    ids=["0004", "between"],
)
def test_names_and_holds_of_before_are_kept(tmp_path: Path, change: str) -> None:
    url = sqlite_url(tmp_path / "reef.db")
    columns = "id, day, scenario, step, usd, input_tokens, output_tokens"
    at_revision(
        url,
        "0004",
        change,
        f"INSERT INTO holds ({columns}) VALUES ('h', '2026-01-01', 's', 1, 0.5, 10, 20)",
        "INSERT INTO aliases (scenario, alias, record_id) VALUES ('s', 'chatcmpl-1', 'r')",
    )
    store = Store(url)
    (alias,) = store.read_now(lambda connection: connection.execute(aliases.select()).all())
    (hold,) = store.read_now(lambda connection: connection.execute(holds.select()).all())
    store.close()
    assert alias._asdict() == {"scenario": "s", "alias": "chatcmpl-1", "record_id": "r"}
    assert (hold.id, hold.epoch, hold.usd) == ("h", 0 if change == "SELECT 1" else 7, 0.5)


def test_what_was_spent_before_it_was_kept_by_step_still_counts(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "reef.db")
    at_revision(url, "0001", "INSERT INTO spending VALUES ('2026-01-01', 's', 0.5, 3, 10, 20)")
    store = Store(url)
    row = store.read_now(lambda connection: connection.execute(spending.select()).one())
    store.close()
    assert row._asdict() == {
        "day": "2026-01-01",
        "scenario": "s",
        "step": 0,
        "usd": 0.5,
        "calls": 3,
        "input_tokens": 10,
        "output_tokens": 20,
    }


_TIME_BEFORE = (
    "DROP INDEX records_by_time",
    "CREATE INDEX records_by_time ON records (scenario, created_at)",
)


@pytest.mark.parametrize(
    "changes",
    [
        (),
        _TIME_BEFORE,
        (*_TIME_BEFORE, "DROP INDEX releases_by_time", "DROP INDEX intents_by_end"),
    ],
    ids=["as it is", "other times", "two indexes less"],
)
def test_every_0005_there_was_comes_to_the_same_schema(tmp_path: Path, changes: tuple[str, ...]) -> None:
    Store.at(tmp_path / "new.db").close()
    at_revision(sqlite_url(tmp_path / "old.db"), "0005", *changes)
    new, old = (Store.at(tmp_path / name) for name in ("new.db", "old.db"))
    assert schema_of(old) == schema_of(new)
    new.close()
    old.close()
