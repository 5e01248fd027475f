"""What growth spent is kept by step, and a step knows what it may spend.

Revision 0002. Never edited after it shipped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_COLUMNS = "day, scenario, usd, calls, input_tokens, output_tokens"


def upgrade() -> None:
    op.add_column("steps", sa.Column("allowed_usd", sa.Float(), nullable=True))
    op.rename_table("spending", "spending_before")
    op.create_table(
        "spending",
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("scenario", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("usd", sa.Float(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("scenario", "step", "day"),
    )
    op.create_index("spending_by_day", "spending", ["day"], unique=False)
    op.execute(f"INSERT INTO spending (step, {_COLUMNS}) SELECT 0, {_COLUMNS} FROM spending_before")  # noqa: S608
    op.drop_table("spending_before")
