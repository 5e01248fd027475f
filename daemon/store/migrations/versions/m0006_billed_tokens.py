"""A record knows how many tokens were read and written in all, whatever its dialect counts as input.

Revision 0006. Never edited after it shipped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("records", sa.Column("billed_tokens", sa.Integer(), nullable=True))
