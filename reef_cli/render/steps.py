"""Steps in lines."""

import json
from typing import Any

from reef_cli.render.releases import cost_line, gate_line
from reef_cli.render.text import clip, count, fields, indent, number, short, table, when

Step = dict[str, Any]


def steps(rows: list[Step]) -> str:
    """Steps as a table."""
    if not rows:
        return "no steps yet: growing starts when a batch of feedback is full (`reef pending`)"
    cells = [
        (
            row["step"],
            row.get("outcome") or row["state"],
            row.get("proposer") or "-",
            row.get("decision") or row.get("reason") or "-",
        )
        for row in rows
    ]
    return table(("STEP", "OUTCOME", "PROPOSER", "DECISION"), cells)


def step(data: Step) -> str:
    """One step from batch to decision."""
    metrics = data.get("metrics") or {}
    error = data.get("error") or {}
    refused = data.get("refused") or {}
    head = fields(
        [
            ("step", f"{data['step']} in {data['scenario']}"),
            ("state", " ".join(part for part in (data["state"], data.get("outcome")) if part)),
            ("started", when(data.get("started_at"))),
            ("finished", when(data.get("finished_at")) if data.get("finished_at") else ""),
            ("base", short(data.get("base_release_id"))),
            ("proposer", data.get("proposer") or ""),
            ("reason", data.get("reason") or ""),
            ("refused", f"{refused.get('rule')}: {refused.get('message')}" if refused else ""),
            ("candidate", short(data.get("candidate_id")) if data.get("candidate_id") else ""),
            ("gate", gate_line(metrics)),
            ("cost", cost_line(metrics.get("cost") or {})),
            ("decision", data.get("decision") or ""),
            ("release", short(data.get("release_id")) if data.get("release_id") else ""),
            ("error", error.get("message") or ""),
            ("hint", error.get("hint") or ""),
        ]
    )
    return "\n\n".join(
        part
        for part in (head, _notes(data), _batch(data), _mutations(data), _episodes(data), _next(data))
        if part
    )


def _notes(data: Step) -> str:
    return "\n".join(data.get("notes") or [])


def _batch(data: Step) -> str:
    batch = data.get("batch") or []
    lines = [f"{unit['report']}: {', '.join(unit.get('receipts') or [])}" for unit in batch]
    before = data.get("continues")
    carried = f", carried on from step {before}" if before is not None else ""
    return (
        f"batch of {count(len(batch), 'report')}{carried}\n{indent(chr(10).join(lines), '  ')}"
        if batch
        else ""
    )


def _mutations(data: Step) -> str:
    lines = []
    for mutation in data.get("mutations") or []:
        options = mutation.get("options") or {}
        config = options.get("config") or {}
        told = config.get("text") or (json.dumps(config, ensure_ascii=False) if config else "")
        kind = options.get("name") or ""
        lines.append(clip(f"{mutation['op']} {kind} {mutation['id']}: {told}", 120))
    return f"changes\n{indent(chr(10).join(lines), '  ')}" if lines else ""


def _episodes(data: Step) -> str:
    rows = [
        (
            each["task"],
            each["side"],
            "reused" if each.get("reused") else each["status"],
            number(each.get("score")),
            each.get("why") or "",
        )
        for each in data.get("episodes") or []
    ]
    return table(("TASK", "SIDE", "STATUS", "SCORE", "WHY"), rows) if rows else ""


def _next(data: Step) -> str:
    if not data.get("pending"):
        return ""
    name = f"step:{data['step']} -s {data['scenario']}"
    return f"it waits for a review: reef show {name}, then reef promote {name} or reef reject {name}"
