"""What a scenario may use in a day: counted, told once, refused, and begun anew at midnight."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from daemon.records.draft import Draft
from daemon.records.used import Used
from daemon.serving.budgets import Budgets, warnings
from daemon.settings.model import BudgetSection, Settings
from reef.errors import OverBudget
from reef.feedback import Usage
from reef.runtime import Billed

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Day:
    """Budgets under a clock that is set by hand, and what they told."""

    def __init__(self, *rows: BudgetSection) -> None:
        self.time = NOON
        self.told: list[tuple[str, float | None]] = []
        self.budgets = Budgets(rows, self._tell, lambda: self.time)

    def _tell(self, scenario: str, what: dict[str, Any]) -> None:
        self.told.append((scenario, what["share"]))

    def use(self, usd: float | None, tokens: int = 10, scenario: str = "s", **more: Any) -> None:
        self.count(usd, Billed(tokens, 0), scenario, **more)

    def count(self, usd: float | None, tokens: Billed | None, scenario: str = "s", **more: Any) -> None:
        values = {"upstream_name": "main", "http_status": 200} | more
        draft = Draft("r", scenario, values.pop("at", self.time), "chat", **values)
        draft.usage, draft.tokens = Usage(cost=usd), tokens
        self.budgets.count(draft)

    def used(self, scenario: str = "s") -> list[float]:
        return [row["used"] for row in self.budgets.state(scenario)]


def test_each_share_is_told_once_a_day_and_a_hard_budget_refuses() -> None:
    day = Day(BudgetSection(usd_per_day=1.0, hard=True, warn_at=(0.8, 0.5)))
    for usd in (0.4, 0.2, 0.2, 0.1):
        day.use(usd)
        day.budgets.admit("s")
    assert day.told == [("s", 0.5), ("s", 0.8)]
    day.use(0.2)
    day.use(0.2)
    assert day.told[2:] == [("s", 1.0)]
    with pytest.raises(OverBudget, match=r"scenario `s` is spent: \$1.30 of \$1.00") as caught:
        day.budgets.admit("s")
    assert caught.value.retry_after_s == 12 * 3600
    assert "usd_per_day" in caught.value.hint
    day.budgets.admit("other")
    (row,) = day.budgets.state("s")
    assert (row["spent"], row["until"], row["unpriced"]) == (True, "2026-02-01T00:00:00.000Z", 0)


@pytest.mark.parametrize(("hard", "becomes"), [(True, "are refused until"), (False, "are still served")])
def test_a_spent_budget_is_one_line_of_the_log_a_day(
    caplog: pytest.LogCaptureFixture, hard: bool, becomes: str
) -> None:
    day = Day(BudgetSection(tokens_per_day=20, hard=hard))
    day.use(None, 19)
    assert not caplog.messages
    for _ in range(3):
        day.use(None, 1)
    (line,) = caplog.messages
    assert line.startswith(
        "today's budget of scenario `s` is spent: 20 of 20 tokens; its requests " + becomes
    )
    day.time = NOON + timedelta(days=1)
    day.use(None, 20)
    assert len(caplog.messages) == 2


def test_a_sum_that_rounding_left_just_below_has_reached_its_bound() -> None:
    day = Day(BudgetSection(usd_per_day=1.0, hard=True, warn_at=(0.8,)))
    for _ in range(8):
        day.use(0.1)
    assert day.used() == [0.7999999999999999]
    assert day.told == [("s", 0.8)]
    day.use(0.1)
    day.use(0.1)
    assert day.used() == [0.9999999999999999]
    assert day.budgets.state("s")[0]["spent"]
    with pytest.raises(OverBudget):
        day.budgets.admit("s")


def test_midnight_begins_anew_and_late_records_count_for_their_own_day() -> None:
    day = Day(BudgetSection(tokens_per_day=20, hard=True))
    day.use(None, 30)
    with pytest.raises(OverBudget, match="30 of 20 tokens"):
        day.budgets.admit("s")
    day.time = NOON + timedelta(hours=12)
    day.budgets.admit("s")
    day.use(None, 30, at=NOON)
    assert day.used() == [0]
    day.use(None, 20)
    assert day.told == [("s", 1.0), ("s", 1.0)]


def test_all_that_fit_hold_and_a_soft_one_refuses_nothing() -> None:
    day = Day(
        BudgetSection(match="s*", usd_per_day=1.0, tokens_per_day=100),
        BudgetSection(usd_per_day=2.0, hard=True),
    )
    day.use(1.5, 200)
    day.budgets.admit("s")
    assert day.used() == [1.5, 200, 1.5]
    assert day.used("other") == [0.0]
    day.use(1.5)
    with pytest.raises(OverBudget):
        day.budgets.admit("s")


def test_growth_counting_and_what_nobody_was_asked_for_are_left_out() -> None:
    day = Day(BudgetSection(usd_per_day=1.0, tokens_per_day=100))
    day.use(1.0, kind="episode")
    day.use(1.0, kind="count_tokens")
    assert day.used() == [0.0, 0]
    day.use(None, 7, kind="title")
    assert day.used() == [0.0, 7]
    assert day.budgets.state("s")[0]["unpriced"] == 1


def test_tokens_are_all_that_was_read_and_written() -> None:
    day = Day(BudgetSection(tokens_per_day=70_015, hard=True, warn_at=()))
    day.count(None, Billed(fresh=10, output=5, cached=50_000, written=20_000))
    assert day.told == [("s", 1.0)]
    with pytest.raises(OverBudget, match="70,015 of 70,015 tokens"):
        day.budgets.admit("s")


def test_answers_without_usage_are_counted_apart_and_told_of_once_a_day(
    caplog: pytest.LogCaptureFixture,
) -> None:
    day = Day(BudgetSection(tokens_per_day=100, usd_per_day=1.0))
    day.count(None, None, http_status=500)
    day.count(None, None, http_status=None)
    assert day.told == []
    day.count(None, None)
    day.count(None, None)
    assert day.told == [("s", None)]
    usd, tokens = day.budgets.state("s")
    assert (usd["uncounted"], usd["unpriced"], tokens["uncounted"]) == (2, 0, 2)
    assert "unpriced" not in tokens
    (line,) = [record.getMessage() for record in caplog.records]
    assert '"stream_options": {"include_usage": true}' in line
    day.time = NOON + timedelta(hours=12)
    day.count(None, None)
    assert day.told == [("s", None)] * 2


def test_money_alone_tells_of_no_answer_without_usage_but_shows_it() -> None:
    day = Day(BudgetSection(usd_per_day=1.0))
    day.count(None, None)
    assert day.told == []
    assert day.budgets.state("s")[0]["uncounted"] == 1


def test_what_was_used_before_a_restart_counts_and_is_not_told_again() -> None:
    day = Day(BudgetSection(match="s", usd_per_day=1.0, hard=True))
    asked: list[tuple[str, str]] = []

    def used_since(scenario: str, since: str) -> Used:
        asked.append((scenario, since))
        return Used(0.9, uncounted=1)

    day.budgets.load(["s", "unbounded"], used_since)
    assert asked == [("s", "2026-01-31")]
    day.use(0.05)
    assert day.told == []
    day.use(0.05)
    assert day.told == [("s", 1.0)]
    with pytest.raises(OverBudget):
        day.budgets.admit("s")


@pytest.mark.parametrize(
    ("more", "warned"),
    [
        ({"budget": [{"usd_per_day": 1}]}, True),
        ({"budget": [{"tokens_per_day": 1}]}, False),
        ({"budget": [{"usd_per_day": 1}], "price": [{"model": "m", "input": 1, "output": 1}]}, False),
        ({}, False),
    ],
)
def test_money_without_any_price_is_warned_of(more: dict[str, Any], warned: bool) -> None:
    assert bool(warnings(Settings.model_validate(more))) is warned
