"""Money: what a step may cost before it runs, and what growth has spent today.

Only upstreams with a price cost money here; a local engine or an upstream without a price has none
that Reef knows.
"""

from dataclasses import dataclass
from functools import cache

from sqlalchemy import Connection, Insert, func, select
from sqlalchemy.dialects import postgresql, sqlite

from daemon.store.schema import spending
from reef.feedback import Usage
from reef.ids import now
from reef.runtime import Price

_SUMS = ("usd", "calls", "input_tokens", "output_tokens")
PROMPT_TOKENS_GUESS = 600
"""Input tokens assumed per call where no record of this scenario tells."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The most a step is expected to take. `usd` is None where no price is known."""

    calls: int
    tokens: int
    usd: float | None

    def sentence(self) -> str:
        money = "no known price" if self.usd is None else f"at most about ${self.usd:.2f}"
        return f"{self.calls} model calls, about {self.tokens:,} tokens, {money}"


def estimate(*, calls: int, input_tokens: int | None, max_tokens: int, price: Price | None) -> Estimate:
    per_call = input_tokens if input_tokens is not None else PROMPT_TOKENS_GUESS
    usd = None
    if price is not None:
        usd = calls * (per_call * price.input + max_tokens * price.output) / 1e6
    return Estimate(calls, calls * (per_call + max_tokens), usd)


def spent_today(connection: Connection) -> float:
    """US dollars that growth spent today (UTC), over all scenarios."""
    query = select(func.sum(spending.c.usd)).where(spending.c.day == _today())
    return float(connection.execute(query).scalar() or 0.0)


def add_spending(connection: Connection, scenario: str, usage: Usage) -> None:
    """Count one call of growth."""
    row = {
        "day": _today(),
        "scenario": scenario,
        "usd": usage.cost or 0.0,
        "calls": 1,
        "input_tokens": usage.input_tokens or 0,
        "output_tokens": usage.output_tokens or 0,
    }
    connection.execute(_adding(connection.dialect.name), row)


@cache
def _adding(dialect: str) -> Insert:
    """Insert a day's row, or add to it. Built once: every episode runs it."""
    insert = (postgresql if dialect == "postgresql" else sqlite).insert(spending)
    sums = {key: spending.c[key] + insert.excluded[key] for key in _SUMS}
    adding: Insert = insert.on_conflict_do_update(index_elements=["day", "scenario"], set_=sums)
    return adding


def _today() -> str:
    return now().strftime("%Y-%m-%d")
