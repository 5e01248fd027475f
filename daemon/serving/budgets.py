"""Budgets: what a scenario's clients may use in a day (UTC), in US dollars or tokens.

The sums are read from the records once, when the daemon starts, and kept in memory from then on: a request
costs one look into a dictionary. What is under way is let finish, so a budget may be passed by that much.
"""

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from daemon.records.draft import Draft
from daemon.records.used import COUNTED, Used
from daemon.settings.model import BudgetSection, Settings
from reef.errors import OverBudget
from reef.ids import now, rfc3339
from reef.money import dollars

Crossed = Callable[[str, dict[str, Any]], None]

log = logging.getLogger("reef.budgets")

_UNCOUNTED = (
    "scenario `%s`: an answer tells no usage, so its budget in tokens does not count it. Streams of chat "
    'completions tell it when they are asked to: "stream_options": {"include_usage": true}'
)
_SPENT = "today's budget of scenario `%s` is spent: %s; %s"
_REFUSED = "its requests are refused until 00:00 UTC"
_SERVED = "its requests are still served (hard = true in its [[budget]] would refuse them)"
TOLERANCE = 1e-9
"""Relative: a sum of many small costs may come out this much below what they add up to."""


@dataclass(slots=True)
class Limit:
    """One bound. `told` is the largest share of it that was told of today."""

    unit: str
    amount: float
    hard: bool
    shares: tuple[float, ...]
    told: float = 0.0

    def used(self, used: Used) -> float:
        return used.usd if self.unit == "usd" else used.tokens

    def crossed(self, used: Used) -> float | None:
        """The share that was reached since this was last asked, if one was."""
        spent = self.used(used)
        reached = max((each for each in self.shares if _reaches(spent, each * self.amount)), default=0.0)
        if reached <= self.told:
            return None
        self.told = reached
        return reached

    def said(self, used: Used) -> str:
        """`$1.30 of $1.00`."""
        if self.unit == "usd":
            return f"{dollars(used.usd)} of {dollars(self.amount)}"
        return f"{used.tokens:,} of {self.amount:,.0f} tokens"

    def shown(self, used: Used) -> dict[str, Any]:
        """Both amounts in `unit`, and how many answers the first of them lacks."""
        spent = self.used(used)
        return {
            "unit": self.unit,
            "used": spent,
            "limit": self.amount,
            "hard": self.hard,
            "spent": _reaches(spent, self.amount),
            **({"unpriced": used.unpriced} if self.unit == "usd" else {}),
            "uncounted": used.uncounted,
        }


@dataclass(slots=True)
class _Account:
    """One scenario's day."""

    limits: list[Limit]
    day: str = ""
    used: Used = field(default_factory=Used)

    def begin(self, day: str, used: Used) -> None:
        """A new day. What its records add up to already was told of."""
        self.day, self.used = day, used
        for limit in self.limits:
            limit.told = 0.0
            limit.crossed(used)


class Budgets:
    """`[[budget]]` of all scenarios. `on_crossed(scenario, what)` hears of each share that is reached, once a
    day, and of the day's first answer that a budget in tokens cannot count (`share` is None then); `clock`
    tells the time."""

    def __init__(
        self,
        rows: Sequence[BudgetSection] = (),
        on_crossed: Crossed = lambda *_: None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._rows = tuple(rows)
        self._on_crossed = on_crossed
        self._clock = clock
        self._accounts: dict[str, _Account] = {}

    def load(self, scenarios: Iterable[str], used_since: Callable[[str, str], Used]) -> None:
        """At the start: take up today's sums. `used_since(scenario, day)` is asked where a budget is."""
        day = _day(self._clock())
        for scenario in scenarios:
            account = self._accounts[scenario] = _Account(self._limits(scenario))
            if account.limits:
                account.begin(day, used_since(scenario, day))

    def admit(self, scenario: str) -> None:
        """Let one more request through. Raises `OverBudget` where a hard budget is spent."""
        if not self._rows:
            return
        account = self._account(scenario)
        for limit in account.limits:
            if limit.hard and _reaches(limit.used(account.used), limit.amount):
                raise self._over(scenario, limit, account.used)

    def count(self, draft: Draft) -> None:
        """An exchange is over: add what it used."""
        if not self._rows or draft.kind not in COUNTED or draft.upstream_name is None:
            return
        account = self._account(draft.scenario)
        if not account.limits or _day(draft.created_at) != account.day:
            return
        used, uncounted = account.used, account.used.uncounted
        used.add(draft)
        for limit in account.limits:
            if (share := limit.crossed(used)) is not None:
                if share >= 1.0:
                    log.warning(_SPENT, draft.scenario, limit.said(used), _REFUSED if limit.hard else _SERVED)
                self._on_crossed(draft.scenario, limit.shown(used) | {"share": share})
            if not uncounted and used.uncounted and limit.unit == "tokens":
                log.warning(_UNCOUNTED, draft.scenario)
                self._on_crossed(draft.scenario, limit.shown(used) | {"share": None})

    def state(self, scenario: str) -> list[dict[str, Any]]:
        """A scenario's budgets as the status shows them."""
        account = self._account(scenario)
        until = rfc3339(_end(self._clock()))
        return [limit.shown(account.used) | {"until": until} for limit in account.limits]

    def _account(self, scenario: str) -> _Account:
        account = self._accounts.get(scenario)
        if account is None:
            account = _Account(self._limits(scenario))
            if account.limits:  # clients may ask under any name they like
                self._accounts[scenario] = account
        if account.limits and account.day != (day := _day(self._clock())):
            account.begin(day, Used())
        return account

    def _limits(self, scenario: str) -> list[Limit]:
        return [
            Limit(unit, amount, row.hard, (*sorted(row.warn_at), 1.0))
            for row in self._rows
            if fnmatchcase(scenario, row.match)
            for unit, amount in (("usd", row.usd_per_day), ("tokens", row.tokens_per_day))
            if amount is not None
        ]

    def _over(self, scenario: str, limit: Limit, used: Used) -> OverBudget:
        clock = self._clock()
        return OverBudget(
            f"today's budget of scenario `{scenario}` is spent: {limit.said(used)}",
            hint=f"raise {limit.unit}_per_day of its [[budget]], or wait until 00:00 UTC",
            retry_after_s=math.ceil((_end(clock) - clock).total_seconds()),
        )


def warnings(settings: Settings) -> list[str]:
    """What is wrong with the budgets of a configuration, a sentence each."""
    priced = settings.price or any(upstream.price for upstream in settings.upstream)
    if priced or all(row.usd_per_day is None for row in settings.budget):
        return []
    return ["a [[budget]] in US dollars bounds nothing: no price is configured (add a [[price]])"]


def _reaches(amount: float, bound: float) -> bool:
    return amount >= bound * (1 - TOLERANCE)


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _end(moment: datetime) -> datetime:
    return (moment + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
