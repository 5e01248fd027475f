"""A scenario in a few lines: what it serves, what it decided last, what it waits for."""

from datetime import datetime
from typing import Any

from reef_cli.tui.text import age, number, one_line, short_id


def about(name: str, state: dict[str, Any], now: datetime) -> str:
    """`state` as in `GET /reef/status`."""
    last = state["last_committed_step"] or {}
    metrics = last.get("metrics") or {}
    selection = metrics.get("selection") or {}
    surface = "" if state["surface"] == "none" else f", changes the {state['surface']}"
    serves = f"serves {short_id(state['release_id'])}"
    if last:
        serves += f", from step {last['step']}, {age(last['recorded_at'], now)} ago"
    if (score := mean_score(metrics)) is not None:
        serves += f", score {number(score)}"
    lines = [f"{name}  recipe {state['recipe']}{surface}", serves]
    if outcome := selection.get("outcome"):
        lines.append(f"last decision: {outcome}, {selection.get('reason') or ''}")
    counts = state["counts"]
    lines.append(
        f"reports: {counts['pending']} wait, {counts['eligible']} eligible, {counts['consumed']} used, "
        f"{counts['ineligible']} did not count"
    )
    return "\n".join(one_line(line) for line in lines)


def mean_score(metrics: dict[str, Any]) -> float | None:
    """The candidate's mean score at the gate."""
    scores = metrics.get("candidate_scores") or {}
    return round(sum(scores.values()) / len(scores), 2) if scores else None
