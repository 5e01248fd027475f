"""Reports, records and verdicts in lines."""

import json
from typing import Any

from reef_cli.render.text import clip, count, fields, number, short, table, table_width, when, width

_TRY_COLUMNS = 300
REASONS = {
    "waiting_for_record": "the exchange is still running",
    "waiting_for_batch": "it waits for a full batch",
    "lost": "the exchange was never stored",
    "no_reference": "the report names no receipt",
    "opted_out": "the report keeps itself out of training",
    "not_a_turn": "the exchange was no turn of a conversation",
    "not_complete": "the exchange did not finish",
    "superseded": "a later exchange replaced it",
    "score_not_a_lesson": "a score like this teaches this recipe nothing",
    "recipe_does_not_learn": "this scenario's recipe only records",
    "stale": "it is too old to train on",
    "forgotten": "the exchange was forgotten",
}


def pair_sentence(pair: dict[str, Any]) -> str:
    """`0197...: eligible, it waits for a full batch`: what became of one (report, receipt) pair."""
    reason = pair.get("reason") or ""
    why = pair.get("message") or REASONS.get(reason) or reason.removeprefix("x:").replace("_", " ")
    step = f"in step {pair['step']}" if pair.get("step") is not None else ""
    step = "" if step.removeprefix("in ") in why else step
    told = ", ".join(part for part in (pair["state"], step, why) if part)
    return f"{pair.get('receipt') or '(no receipt)'}: {told}"


def reported(data: dict[str, Any]) -> str:
    """What `reef report` says after the report was stored and judged."""
    head = f"report {data['agent_record_id']} in {data['scenario']}"
    pairs = data.get("pairs") or []
    lines = [pair_sentence(pair) for pair in pairs] or ["stored; not judged yet, see `reef pending`"]
    if ignored := data.get("ignored"):
        lines.append(f"ignored: {', '.join(ignored)}")
    return "\n".join([head, *(f"  {line}" for line in lines)])


def feedback_text(report: dict[str, Any]) -> str:
    """What a report says, on one line."""
    feedback = report.get("feedback")
    if isinstance(feedback, dict):
        told = feedback.get("text") or feedback.get("correction") or json.dumps(feedback, ensure_ascii=False)
    else:
        told = feedback or ""
    score = report.get("score")
    return " ".join(
        part for part in (f"score {number(score)}" if score is not None else "", str(told)) if part
    )


def records(data: dict[str, Any]) -> str:
    """Records as a table, in the order of the answer; the upstreams where there is room for them."""
    full, rows = _rows(data, upstream=True)
    if table_width(full, rows) > width():
        full, rows = _rows(data, upstream=False)
    return table(full, rows) if rows else "no records"


def _rows(data: dict[str, Any], *, upstream: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The headers and the rows of records."""
    several = len({row.get("scenario") for row in data["records"]}) > 1
    rows = [
        (
            row["agent_record_id"],
            *((row.get("scenario") or "-",) if several else ()),
            when(row.get("created_at")),
            row.get("kind") or row.get("request_type") or "-",
            (row.get("status") or "-") + (", superseded" if row.get("superseded_by") else ""),
            *(((row.get("upstream") or {}).get("name") or "-",) if upstream else ()),
            row.get("model") or "-",
        )
        for row in data["records"]
    ]
    names = ("RECEIPT", "SCENARIO", "TIME", "KIND", "STATUS", "UPSTREAM", "MODEL")
    left_out = {None if several else "SCENARIO", None if upstream else "UPSTREAM"}
    return tuple(name for name in names if name not in left_out), rows


def explain(record: dict[str, Any]) -> str:
    """The story of one record."""
    usage = record.get("usage") or {}
    timing = record.get("timing") or {}
    error = record.get("error") or {}
    # Anthropic counts what came from its cache beside the input, the others as a part of it.
    told = ", {} from the cache" if record.get("dialect") == "messages" else " ({} of them cached)"
    cached = told.format(usage["cached_tokens"]) if usage.get("cached_tokens") else ""
    tokens = (
        f"{usage['input_tokens']} in{cached}, {usage.get('output_tokens')} out"
        if usage.get("input_tokens") is not None
        else ""
    )
    facts = fields(
        [
            ("receipt", record["agent_record_id"]),
            ("scenario", record.get("scenario") or ""),
            ("when", when(record.get("created_at"))),
            ("what", " ".join(str(record.get(key) or "") for key in ("kind", "status")).strip()),
            ("model", record.get("model") or ""),
            *_way(record),
            ("release", short(record.get("release_id")) if record.get("release_id") else ""),
            ("tokens", tokens),
            ("cost", f"${usage['cost']:.6f}" if usage.get("cost") is not None else ""),
            ("took", f"{timing['total_ms']:.0f} ms" if timing.get("total_ms") is not None else ""),
            ("error", error.get("message") or ""),
        ]
    )
    return "\n\n".join([facts, *_story(record)])


def _way(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Who answered, by which name it knows the model, and what happened on the way there."""
    upstream, metadata = record.get("upstream") or {}, record.get("metadata") or {}
    name, model = upstream.get("name") or "", upstream.get("model")
    named = f" (model {model})" if name and model and model != record.get("model") else ""
    bridged = metadata.get("bridged")
    return [
        ("upstream", name + named),
        ("bridge", f"{record.get('dialect')} to {bridged}" if bridged else ""),
        *(("other try", clip(attempt, _TRY_COLUMNS)) for attempt in metadata.get("attempts") or []),
        ("dropped", ", ".join(record.get("dropped") or [])),
    ]


def _story(record: dict[str, Any]) -> list[str]:
    parts = []
    verdicts = record.get("verdicts") or []
    for report in record.get("reports") or []:
        name = report["agent_record_id"]
        lines = [f"report {name}: {clip(feedback_text(report), 200)}"]
        lines += [f"  {_verdict(each)}" for each in verdicts if each.get("report") == name]
        parts.append("\n".join(lines))
    if step := record.get("step"):
        outcome = step.get("outcome") or step.get("state")
        parts.append(f"step {step['step']}: {outcome}. {step.get('decision') or ''}".rstrip())
    if parts:
        return parts
    if counts := record.get("superseded_by"):
        return [f"the client sent it again: {counts} counts instead"]
    if record.get("kind") != "turn" or record.get("status") != "complete":
        return ["no report cites it, and none could teach: it is no finished turn"]
    return ["no report cites it: reef report --score 1 " + str(record["agent_record_id"])]


def _verdict(verdict: dict[str, Any]) -> str:
    return f"{verdict.get('recipe') or 'verdict'}: " + pair_sentence(verdict).partition(": ")[2]


def waiting_reports(reports: list[dict[str, Any]]) -> str:
    """Reports whose pairs wait, one line each with the reason."""
    lines = []
    for report in reports:
        told = [pair_sentence(pair) for pair in report.get("pairs") or [] if pair["state"] != "consumed"]
        lines.append(f"  {clip(feedback_text(report), 76) or 'a report'}")
        lines += [f"    {line}" for line in told]
    return "\n".join([count(len(reports), "report") + " waiting:", *lines])
