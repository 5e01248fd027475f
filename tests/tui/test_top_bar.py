"""The line at the top shows the fullest budget of the scenario in view."""

from typing import Any

from reef_cli.tui.widgets.top_bar import TopBar


def shown(*budgets: dict[str, Any]) -> str:
    bar = TopBar()
    bar.set_reactive(TopBar.status, {"scenarios": {"s": {"budgets": list(budgets)}, "other": {}}})
    bar.set_reactive(TopBar.scenario, "s")
    return bar.render().plain


def test_the_fullest_budget_of_the_scenario_in_view() -> None:
    usd = {"unit": "usd", "used": 4.1, "limit": 5.0, "hard": True, "spent": False}
    tokens = {"unit": "tokens", "used": 12000, "limit": 10000, "hard": False, "spent": True}
    assert shown(usd).endswith("budget $4.10 of $5.00 today")
    assert shown(usd, tokens).endswith("budget spent, still served: 12,000 of 10,000 tokens today")
    assert "budget" not in shown()
