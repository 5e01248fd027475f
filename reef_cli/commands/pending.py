"""`reef pending`: what waits, and what to do about it."""

from typing import Any

from reef.client import Client
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, hint
from reef_cli.render.releases import Row, gate_line
from reef_cli.render.reports import waiting_reports
from reef_cli.render.text import clip, count, short
from reef_cli.session import command, waiting_candidates

app = command()


@app.command()
def pending(scenario: Scenario = None, as_json: JsonFlag = False) -> None:
    """What waits for an exchange to end, for a batch to fill, and for a person to decide."""
    with Client() as client:
        state = client.status()
        names = [scenario] if scenario is not None else list(state.get("scenarios") or {})
        data = {name: _waiting(client, name, state) for name in names}
    emit(data, render, as_json=as_json)
    hint(state)


def _waiting(client: Client, name: str, state: dict[str, Any]) -> dict[str, Any]:
    reports = [row for word in ("eligible", "pending") for row in client.reports(name, state=word)["reports"]]
    steps = client.steps(name)["steps"]
    return {
        "reports": reports,
        "batch": ((state.get("scenarios") or {}).get(name) or {}).get("batch"),
        "reviews": waiting_candidates(client, name),
        "held": [row for row in steps if row["state"] == "waiting" and not row.get("pending")],
    }


def render(data: dict[str, Any]) -> str:
    """What waits, scenario by scenario, with the commands to try."""
    texts = {name: _one(name, waiting) for name, waiting in data.items()}
    shown = [f"{name}\n\n{text}" for name, text in texts.items() if text]
    return "\n\n".join(shown) or "nothing waits"


def _one(name: str, waiting: dict[str, Any]) -> str:
    parts = [_review(name, row) for row in waiting["reviews"]]
    parts += [
        f"step {row['step']} is held: {row.get('decision') or 'it waits'}\n"
        f"  reef step {row['step']} -s {name} --run"
        for row in waiting["held"]
    ]
    if waiting["reports"]:
        parts.append(waiting_reports(waiting["reports"]))
        if batch := waiting.get("batch"):
            parts.append(f"batch: {batch['have']} of {count(batch['need'], 'report')}")
    return "\n\n".join(parts)


def _review(name: str, row: Row) -> str:
    title = clip((row.get("message") or "").partition("\n")[0], 76)
    gate = gate_line(row.get("metrics") or {})
    lines = [f"step {row['step']} waits for your review: {short(row['candidate_id'])}"]
    lines += [f"  {title}"] if title else []
    lines += [f"  {gate}"] if gate else []
    told = f"step:{row['step']} -s {name}"
    lines += [f"  reef show {told}", f"  reef promote {told}", f"  reef reject {told}"]
    return "\n".join(lines)
