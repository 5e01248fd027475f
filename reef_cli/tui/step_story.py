"""A step in words: what it was made of, what was proposed, how it did, how far the decision is."""

from typing import Any

from reef_cli.tui.text import clock, number, one_line, safe, short_id
from reef_cli.tui.widgets.row_list import Row

Step = dict[str, Any]


def story(step: Step, progress: dict[str, Any] | None = None) -> str:
    parts = [
        _state(step, progress),
        _proposal(step),
        _evidence(step),
        _cost(step),
        _batch(step),
        _notes(step),
    ]
    return "\n\n".join(part for part in parts if part)


def _state(step: Step, progress: dict[str, Any] | None) -> str:
    lines = [f"step {step['step']}  {step['state']}" + (f": {step['outcome']}" if step["outcome"] else "")]
    evaluating = step["state"] == "evaluating"
    if evaluating and progress and progress["step"] == step["step"] and progress["total"]:
        lines.append(f"episodes {progress['done']} of {progress['total']}")
    if step["decision"]:
        lines.append(safe(step["decision"]))
    if step["refused"]:
        lines.append(f"refused by the rule `{step['refused']['rule']}`: {safe(step['refused']['message'])}")
    if error := step["error"]:
        lines.append(f"! {safe(error['message'])}\n  {safe(error['hint'])}")
    if step["pending"]:
        lines.append("p promotes it, x rejects it; d shows what it changes")
    elif step["waits_for"] == "money":
        lines.append("r runs it, c cancels it")
    return "\n".join(lines)


def _proposal(step: Step) -> str:
    if not step["mutations"]:
        return ""
    lines = [f"{step['proposer']}: {one_line(step['reason'])}"]
    for mutation in step["mutations"]:
        kind = (mutation.get("options") or {}).get("name") or ""
        lines.append(f"  {mutation['op']} {kind} {mutation['id']}")
    lines.append(f"  candidate {short_id(step['candidate_id'])} on {short_id(step['base_release_id'])}")
    return "\n".join(lines)


def _evidence(step: Step) -> str:
    metrics = step["metrics"] or {}
    if "wins" not in metrics:
        return ""
    lines = [f"{metrics['wins']} wins, {metrics['losses']} losses, {metrics['ties']} ties"]
    evidence = metrics.get("evidence") or {}
    for at, look in enumerate(evidence.get("looks") or [], 1):
        needed = (
            "no count could select" if look["wins_needed"] is None else f"{look['wins_needed']} wins needed"
        )
        lines.append(
            f"  look {at}: {look['units']} tasks, {look['wins']} won, {look['losses']} lost, "
            f"{look['ties']} tied; {needed}"
        )
    if evidence.get("units_needed"):
        lines.append(f"  about {evidence['units_needed']} gate tasks would decide")
    return "\n".join(lines)


def _cost(step: Step) -> str:
    cost = (step["metrics"] or {}).get("cost")
    if not cost:
        return ""
    tokens = (cost["input_tokens"] or 0) + (cost["output_tokens"] or 0)
    money = f", ${cost['money']:.4f}" if cost["money"] else ""
    return f"cost: {cost['episodes']} episodes, {tokens:,} tokens, {cost['seconds'] or 0:.0f} s{money}"


def _batch(step: Step) -> str:
    lines = [f"{unit['report']}: {', '.join(unit['receipts'])}" for unit in step.get("batch") or []]
    carried = f" (carried on from step {step['continues']})" if step["continues"] is not None else ""
    started = f"started {clock(step['started_at'])}"
    return "\n".join([f"batch of {len(lines)}{carried}, {started}", *(f"  {line}" for line in lines)])


def _notes(step: Step) -> str:
    return "\n".join(safe(note) for note in step["notes"] or [])


def episode_rows(episodes: list[dict[str, Any]]) -> list[Row]:
    """One row a task: the mean score of both sides, filling as episodes finish."""
    tasks: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for episode in episodes:
        tasks.setdefault(episode["task"], {}).setdefault(episode["side"], []).append(episode)
    return [_task_row(task, sides) for task, sides in sorted(tasks.items())]


def _task_row(task: str, sides: dict[str, list[dict[str, Any]]]) -> Row:
    now, candidate = _mean(sides.get("current")), _mean(sides.get("candidate"))
    result, tone = "...", "busy"
    if now is not None and candidate is not None:
        gain = candidate - now
        result, tone = ("win", "good") if gain > 0 else ("loss", "bad") if gain < 0 else ("tie", "quiet")
    why = next(
        (e["why"] for e in reversed(sides.get("candidate") or sides.get("current") or []) if e["why"]), ""
    )
    return Row(task, (one_line(task), number(now), number(candidate), result, one_line(why)), tone)


def _mean(episodes: list[dict[str, Any]] | None) -> float | None:
    scores = [episode["score"] for episode in episodes or [] if episode["score"] is not None]
    return sum(scores) / len(scores) if scores else None
