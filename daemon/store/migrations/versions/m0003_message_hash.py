"""A record knows the message list that was asked, so that a retry finds what it repeats.

Revision 0003. Never edited after it shipped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("records", sa.Column("message_hash", sa.LargeBinary(), nullable=True))
    op.create_index("records_by_messages", "records", ["scenario", "message_hash"], unique=False)
