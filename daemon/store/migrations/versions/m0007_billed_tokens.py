"""A record knows how many tokens were read and written in all, whatever its dialect counts as input.

Revision 0007. Never edited after it shipped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("records", sa.Column("billed_tokens", sa.BigInteger(), nullable=True))
