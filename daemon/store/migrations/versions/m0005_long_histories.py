"""Long histories: what belongs together is found in its order without looking at a whole scenario, and
indexes skip records that have nothing there. The names of a record are found by the record, and a name
without its scenario. A hold knows the lease under which it was taken.

Revision 0005. Never edited after it shipped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_SPARSE = {
    "records_by_run": ("run", ["run", "scenario", "sequence"]),
    "records_by_session": ("session", ["session", "scenario", "sequence"]),
    "records_by_conversation": ("conversation", ["scenario", "conversation", "sequence"]),
    "records_by_messages": ("message_hash", ["scenario", "message_hash"]),
}


def upgrade() -> None:
    for name, (column, columns) in _SPARSE.items():
        there = sa.text(f"{column} IS NOT NULL")
        op.drop_index(name, "records")
        op.create_index(name, "records", columns, unique=False, sqlite_where=there, postgresql_where=there)
    op.drop_index("records_by_time", "records")
    op.create_index("records_by_time", "records", ["created_at", "id"], unique=False)
    op.create_index("releases_by_time", "releases", ["scenario", "recorded_at"], unique=False)
    op.create_index("intents_by_end", "intents", ["scenario", "done_at"], unique=False)
    op.rename_table("aliases", "aliases_before")
    op.create_table(
        "aliases",
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("scenario", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("alias", "scenario", "record_id"),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO aliases SELECT alias, scenario, record_id FROM aliases_before")
    op.drop_table("aliases_before")
    op.create_index("aliases_by_record", "aliases", ["record_id"], unique=False)
    if "epoch" not in {
        column["name"] for column in sa.inspect(op.get_bind()).get_columns("holds")
    }:  # some were made with it
        op.add_column("holds", sa.Column("epoch", sa.Integer(), nullable=False, server_default="0"))
