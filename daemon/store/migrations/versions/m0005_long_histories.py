"""The newest release of a scenario, and what it has yet to publish, are found without looking at all it has.

Revision 0005. Never edited after it shipped.
"""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("releases_by_time", "releases", ["scenario", "recorded_at"], unique=False)
    op.create_index("intents_by_end", "intents", ["scenario", "done_at"], unique=False)
