"""Alembic's entry: runs migrations on the connection that `daemon.store.migrate` hands over."""

from alembic import context

from daemon.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
