"""Opening the database: one engine for the writer, one for readers.

SQLite runs in WAL mode with `synchronous=FULL`, so a commit survives a power cut. Its transactions
begin explicitly (IMMEDIATE for the writer), since the driver's own habit of beginning late breaks
savepoints and isolation.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url

BUSY_TIMEOUT_MS = 10_000


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def is_sqlite(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def writer_engine(url: str) -> Engine:
    """An engine whose transactions take the write lock when they begin."""
    engine = create_engine(url, **_pool(url, size=1))
    if is_sqlite(engine):
        _prepare_sqlite(engine, begin="BEGIN IMMEDIATE", read_only=False)
    return engine


def reader_engine(url: str) -> Engine:
    """An engine for reads; on SQLite it cannot write."""
    engine = create_engine(url, **_pool(url, size=8))
    if is_sqlite(engine):
        _prepare_sqlite(engine, begin="BEGIN", read_only=True)
    return engine


def driver_of(connection: Connection) -> Any:
    """The driver's own connection behind one of SQLAlchemy's."""
    driver = connection.connection.dbapi_connection
    assert driver is not None
    return driver


def _pool(url: str, *, size: int) -> dict[str, Any]:
    options: dict[str, Any] = {"pool_size": size, "max_overflow": 0 if size == 1 else size}
    if make_url(url).get_backend_name() == "sqlite":
        options["connect_args"] = {"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000}
    return options


def _prepare_sqlite(engine: Engine, *, begin: str, read_only: bool) -> None:
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        if not read_only:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        if read_only:
            connection.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def on_begin(connection: Any) -> None:
        if not driver_of(connection).in_transaction:  # the writer begins by itself
            connection.exec_driver_sql(begin)
