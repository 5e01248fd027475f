"""`reef pending`: what waits, and what to do about it."""

from typing import Annotated, Any

import typer

from reef.client import Client
from reef.errors import Conflict
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, hint
from reef_cli.render.releases import Row, gate_line
from reef_cli.render.reports import waiting_reports
from reef_cli.render.text import clip, count, short
from reef_cli.session import FEW, command

app = command()
MOST_STEPS = 10_000


@app.command()
def pending(
    scenario: Scenario = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them, however many wait.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """What waits for an exchange to end, for a batch to fill, and for a person to decide."""
    with Client() as client:
        state = client.status()
        names = [scenario] if scenario is not None else list(state.get("scenarios") or {})
        most = None if everything or as_json else FEW
        data = {name: _waiting(client, name, state, most) for name in names}
    emit(data, lambda found: render(found, most), as_json=as_json)
    hint(state)


def _waiting(client: Client, name: str, state: dict[str, Any], most: int | None) -> dict[str, Any]:
    reports = [row for word in ("eligible", "pending") for row in client.reports(name, state=word)["reports"]]
    steps = client.steps(name, limit=MOST_STEPS)["steps"]
    releases = client.releases(name)["releases"]
    reviews = [row for row in releases if row.get("pending") and row.get("candidate_id")]
    for row in reviews[:most]:
        row["outdated"] = _outdated(client, name, row, releases)
    return {
        "reports": reports,
        "batch": ((state.get("scenarios") or {}).get(name) or {}).get("batch"),
        "reviews": reviews,
        "held": [row for row in steps if row["state"] == "waiting" and not row.get("pending")],
    }


def _outdated(client: Client, name: str, row: Row, releases: list[Row]) -> str | None:
    """What has become of a candidate since another release is served than the one it was made for."""
    contents = {each["release_id"]: each.get("content_id") for each in reversed(releases) if _served(each)}
    head = next((each for each in releases if each.get("current")), None)
    base = row.get("parent_release_id")
    if head is None or base is None or contents.get(base) == head.get("content_id"):
        return None
    try:
        client.diff(name, "HEAD", row["candidate_id"])
    except Conflict as error:
        return error.message
    return (
        f"made for the earlier release {short(base)}; promoting it applies its changes to what is served now"
    )


def _served(row: Row) -> bool:
    return bool(row.get("published", (row.get("metrics") or {}).get("published", True)))


def render(data: dict[str, Any], most: int | None = None) -> str:
    """What waits, scenario by scenario, with the commands to try; of each kind `most` at most."""
    texts = {name: _one(name, waiting, most) for name, waiting in data.items()}
    shown = [f"{name}\n\n{text}" for name, text in texts.items() if text]
    return "\n\n".join(shown) or "nothing waits"


def _one(name: str, waiting: dict[str, Any], most: int | None) -> str:
    parts = [_review(name, row) for row in waiting["reviews"][:most]]
    if left := len(waiting["reviews"][len(parts) :]):
        parts.append(f"{left} more wait for your review: reef pending -s {name} --all")
    parts += [
        f"step {row['step']} is held: {row.get('decision') or 'it waits'}\n"
        f"  reef step {row['step']} -s {name} --run"
        for row in waiting["held"][:most]
    ]
    if left := len(waiting["held"][most:] if most is not None else ()):
        parts.append(f"{left} more steps are held: reef pending -s {name} --all")
    if waiting["reports"]:
        shown = waiting_reports(waiting["reports"][:most])
        if left := len(waiting["reports"][most:] if most is not None else ()):
            shown += f"\n  and {left} more: reef pending -s {name} --all"
        parts.append(shown)
        if batch := waiting.get("batch"):
            parts.append(f"batch: {batch['have']} of {count(batch['need'], 'report')}")
    return "\n\n".join(parts)


def _review(name: str, row: Row) -> str:
    title = clip((row.get("message") or "").partition("\n")[0], 76)
    gate = gate_line(row.get("metrics") or {})
    lines = [f"step {row['step']} waits for your review: {short(row['candidate_id'])}"]
    lines += [f"  {title}"] if title else []
    lines += [f"  {gate}"] if gate else []
    lines += [f"  {row['outdated']}"] if row.get("outdated") else []
    told = f"step:{row['step']} -s {name}"
    lines += [f"  reef show {told}", f"  reef promote {told}", f"  reef reject {told}"]
    return "\n".join(lines)
