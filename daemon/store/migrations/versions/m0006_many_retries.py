"""What repeats a turn is found without looking at what was superseded before. Some databases of revision 0005
were made when it lacked an index, or had another in its place; they get those that it has now.

Revision 0006. Never edited after it shipped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_OF_0005 = {
    "records_by_time": ("records", ["created_at", "id"]),
    "releases_by_time": ("releases", ["scenario", "recorded_at"]),
    "intents_by_end": ("intents", ["scenario", "done_at"]),
}


def upgrade() -> None:
    inspector = sa.inspect(op.get_bind())
    for name, (table, columns) in _OF_0005.items():
        found = {index["name"]: index["column_names"] for index in inspector.get_indexes(table)}
        if found.get(name) == columns:
            continue
        if name in found:
            op.drop_index(name, table)
        op.create_index(name, table, columns, unique=False)
    op.drop_index("records_by_messages", "records")
    there = sa.text("message_hash IS NOT NULL")
    op.create_index(
        "records_by_messages",
        "records",
        ["scenario", "message_hash", "superseded_by", "created_at"],
        unique=False,
        sqlite_where=there,
        postgresql_where=there,
    )
