"""Money: what a step may cost before it runs, and what growth has spent today.

Only upstreams with a price cost money here; a local engine or an upstream without a price has none
that Reef knows.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from daemon.store.schema import spending
from reef.feedback import Usage
from reef.ids import now
from reef.runtime import Price

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
    from sqlalchemy.dialects import postgresql, sqlite

    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {
        "day": _today(),
        "scenario": scenario,
        "usd": usage.cost or 0.0,
        "calls": 1,
        "input_tokens": usage.input_tokens or 0,
        "output_tokens": usage.output_tokens or 0,
    }
    statement = insert(spending).values(row)
    grown = {key: spending.c[key] + row[key] for key in ("usd", "calls", "input_tokens", "output_tokens")}
    connection.execute(statement.on_conflict_do_update(index_elements=["day", "scenario"], set_=grown))


def _today() -> str:
    return now().strftime("%Y-%m-%d")
