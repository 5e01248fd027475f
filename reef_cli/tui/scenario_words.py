"""A scenario in a few lines: what it serves, what it decided last, what it waits for."""

from datetime import datetime
from typing import Any

from reef_cli.tui.text import age, number, one_line, short_id


def about(name: str, state: dict[str, Any], now: datetime) -> str:
    """`state` as in `GET /reef/status`."""
    surface = "" if state["surface"] == "none" else f", changes the {state['surface']}"
    lines = [f"{name}  recipe {state['recipe']}{surface}", _served(state, now)]
    last = state["last_committed_step"] or {}
    selection = (last.get("metrics") or {}).get("selection") or {}
    if outcome := selection.get("outcome"):
        lines.append(
            f"last decision: step {last['step']}, {age(last['recorded_at'], now)} ago: {outcome}, "
            f"{selection.get('reason') or ''}"
        )
    counts = state["counts"]
    lines.append(
        f"reports: {counts['pending']} wait, {counts['eligible']} eligible, {counts['consumed']} used, "
        f"{counts['ineligible']} did not count"
    )
    return "\n".join(one_line(line) for line in lines)


def _served(state: dict[str, Any], now: datetime) -> str:
    """The release that is served and how it came to be, by its own row."""
    serves = f"serves {short_id(state['release_id'])}"
    if not (head := state.get("head")):
        return serves
    ago = f"{age(head['recorded_at'], now)} ago"
    if head["operation"] == "rollback":
        return f"{serves}, rolled back {ago} to {short_id(head['rollback_target_release_id'])}"
    if head["operation"] == "creation":
        return f"{serves}, as it was created {ago}"
    if head["operation"] == "training":
        serves += f", from step {head['step']}, {ago}"
    else:
        serves += f", by {head['operation']} (step {head['step']}), {ago}"
    score = mean_score(head["metrics"] or {})
    return serves if score is None else f"{serves}, score {number(score)}"


def mean_score(metrics: dict[str, Any]) -> float | None:
    """The candidate's mean score at the gate."""
    scores = metrics.get("candidate_scores") or {}
    return round(sum(scores.values()) / len(scores), 2) if scores else None
