"""The newest release of a scenario is found, and its history read in order, without looking at all of it.

Revision 0005. Never edited after it shipped.
"""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("releases_by_time", "releases", ["scenario", "recorded_at"], unique=False)
