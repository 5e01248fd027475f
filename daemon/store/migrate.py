"""Bringing a database to the current revision. Alembic is imported only when there is work to do."""

from pathlib import Path

from sqlalchemy import Engine, inspect, text

from reef.errors import Unavailable

REVISION = "0007"
"""The newest file in `migrations/versions`; a test holds the two together."""


def current_revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate(engine: Engine) -> None:
    """Upgrade the database behind `engine`, in one transaction.

    Raises:
        Unavailable: the database was written by a newer Reef.
    """
    found = current_revision(engine)
    if found == REVISION:
        return
    if found is not None and found > REVISION:
        raise Unavailable(
            f"this database is at revision {found}, newer than {REVISION}, the newest that this Reef knows",
            hint="install the newer Reef again, or use another REEF_HOME",
        )
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, REVISION)
