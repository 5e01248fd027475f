"""What a scenario's clients have used in a day, added up from their records."""

from dataclasses import dataclass

from sqlalchemy import Connection, case, func, or_, select

from daemon.records.draft import Draft
from daemon.store.schema import records

COUNTED = frozenset({"turn", "title", "compaction"})
"""The kinds of records that a client pays for. Growth has a limit of its own, and counting tokens is free."""


@dataclass(slots=True)
class Used:
    """`tokens` is all that was read and written, what came from a provider's cache or went into it too.
    `unpriced` are the answers that tell their tokens but not what they cost, `uncounted` those that do not
    tell their tokens either. What failed is none of them: it may have cost nothing."""

    usd: float = 0.0
    tokens: int = 0
    unpriced: int = 0
    uncounted: int = 0

    def add(self, draft: Draft) -> None:
        """Count one record, of which is known by now what it used."""
        self.usd += draft.usage.cost or 0.0
        if draft.tokens is not None:
            self.tokens += draft.tokens.total
            self.unpriced += draft.usage.cost is None
        else:
            answered = draft.http_status is not None and 200 <= draft.http_status < 300
            self.uncounted += answered and draft.status != "failed"


def used_since(connection: Connection, scenario: str, day: str) -> Used:
    """The use of one scenario from the start of a day (UTC, `2026-01-31`) on. Imported records have none."""
    told = [records.c[name] for name in ("billed_tokens", "input_tokens", "output_tokens")]
    known = or_(*(column.is_not(None) for column in told))
    # Older records know only what was reported; Anthropic reports what came from the cache beside the input.
    beside = case((records.c.dialect == "messages", func.coalesce(records.c.cached_tokens, 0)), else_=0)
    reported = func.coalesce(records.c.input_tokens, 0) + func.coalesce(records.c.output_tokens, 0) + beside
    query = select(
        func.coalesce(func.sum(records.c.cost), 0.0),
        func.coalesce(func.sum(func.coalesce(records.c.billed_tokens, reported)), 0),
        func.count().filter(known & records.c.cost.is_(None)),
        func.count().filter(
            ~known & records.c.http_status.between(200, 299) & (records.c.status != "failed")
        ),
    ).where(
        records.c.scenario.concat("") == scenario,  # so that the day is looked up, not the scenario
        records.c.created_at >= day,
        records.c.request_type == "inference",
        records.c.kind.in_(COUNTED),
        records.c.upstream_name.is_not(None),
    )
    usd, tokens, unpriced, uncounted = connection.execute(query).one()
    return Used(float(usd), int(tokens), int(unpriced), int(uncounted))
