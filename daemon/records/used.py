"""What a scenario's clients have used in a day, added up from their records."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from daemon.store.schema import records

COUNTED = frozenset({"turn", "title", "compaction"})
"""The kinds of records that a client pays for. Growth has a limit of its own, and counting tokens is free."""


@dataclass(slots=True)
class Used:
    """`unpriced` are the records that tell their tokens but not what they cost."""

    usd: float = 0.0
    tokens: int = 0
    unpriced: int = 0


def used_since(connection: Connection, scenario: str, day: str) -> Used:
    """The use of one scenario from the start of a day (UTC, `2026-01-31`) on. Imported records have none."""
    known = records.c.input_tokens.is_not(None) | records.c.output_tokens.is_not(None)
    tokens = func.coalesce(records.c.input_tokens, 0) + func.coalesce(records.c.output_tokens, 0)
    query = select(
        func.coalesce(func.sum(records.c.cost), 0.0),
        func.coalesce(func.sum(tokens), 0),
        func.count().filter(known & records.c.cost.is_(None)),
    ).where(
        records.c.scenario.concat("") == scenario,  # so that the day is looked up, not the scenario
        records.c.created_at >= day,
        records.c.request_type == "inference",
        records.c.kind.in_(COUNTED),
        records.c.upstream_name.is_not(None),
    )
    usd, count, unpriced = connection.execute(query).one()
    return Used(float(usd), int(count), int(unpriced))
