"""A record in words: its row, its facts, its story; and the filter over rows."""

import base64
import json
from collections.abc import Callable
from typing import Any

from reef_cli.render.reports import feedback_text, pair_sentence
from reef_cli.tui.text import clock, number, one_line, short_id
from reef_cli.tui.widgets.row_list import Row

FIELDS = ("kind", "status", "model", "scenario", "session", "run", "release")
_MORE_FIELDS = ("receipt", "error", "upstream", "tags", "report")
_TONES = {"failed": "bad", "aborted": "busy"}


def kind_of(record: dict[str, Any]) -> str:
    """What it is: `turn`, `title`, ... or `report`."""
    return str(record.get("kind") or record["request_type"])


def money(cost: float | None) -> str:
    return "" if cost is None else f"${cost:.4f}"


def record_row(record: dict[str, Any], *, with_scenario: bool) -> Row:
    usage, timing = record.get("usage") or {}, record.get("timing") or {}
    model = one_line(record.get("model") or said_in(record))
    took = timing.get("total_ms")
    status = record.get("status") or ""
    cells = (
        clock(record["created_at"]),
        kind_of(record),
        status,
        f"{record['scenario']} {model}" if with_scenario else model,
        f"{_tokens(usage, 'input_tokens')}/{_tokens(usage, 'output_tokens')}".strip("/"),
        money(usage.get("cost")),
        "" if took is None else f"{took:.0f}",
        record["agent_record_id"][-12:],
    )
    quiet = "" if kind_of(record) == "turn" else "quiet"
    return Row(record["agent_record_id"], cells, _TONES.get(status, quiet))


def said_in(report: dict[str, Any]) -> str:
    """`score 0: too long`: what a report says; empty for anything else."""
    payload = report.get("payload") or {}
    if report["request_type"] != "report":
        return ""
    score = payload.get("score")
    text = feedback_text({"feedback": payload.get("feedback")})
    return ": ".join(part for part in (f"score {number(score)}" if score is not None else "", text) if part)


def _tokens(usage: dict[str, Any], name: str) -> str:
    count = usage.get(name)
    return "" if count is None else str(count)


def matcher(words: str) -> Callable[[dict[str, str], Callable[[str], bool]], bool]:
    """Whether a record holds every word: `kind:turn`, `status:failed`, ... or text anywhere, in `texts_of` it
    or in what was said in it (`said` tells)."""
    named = [word.partition(":")[::2] for word in words.casefold().split() if _is_field(word)]
    free = free_words(words)

    def matches(texts: dict[str, str], said: Callable[[str], bool]) -> bool:
        anywhere = " ".join(texts.values())
        return all(value in texts[name] for name, value in named) and all(
            word in anywhere or said(word) for word in free
        )

    return matches


def free_words(words: str) -> list[str]:
    """The words of a filter that name no field, in lower case."""
    return [word for word in words.casefold().split() if not _is_field(word)]


def _is_field(word: str) -> bool:
    name, colon, _ = word.partition(":")
    return bool(colon) and name in (*FIELDS, *_MORE_FIELDS)


def texts_of(record: dict[str, Any]) -> dict[str, str]:
    """What a filter looks at, by field, in lower case."""
    found = {name: str(record.get(name) or "") for name in FIELDS}
    found |= {"kind": kind_of(record), "release": record.get("release_id") or ""}
    found["receipt"] = record["agent_record_id"]
    found["error"] = (record.get("error") or {}).get("message") or ""
    found["upstream"] = (record.get("upstream") or {}).get("name") or ""
    found["report"] = feedback_text(record.get("payload") or {})
    found["tags"] = json.dumps((record.get("metadata") or {}).get("tags") or {}, ensure_ascii=False)
    return {name: text.casefold() for name, text in found.items()}


def facts(record: dict[str, Any]) -> list[str]:
    """What is known of an exchange besides its words."""
    usage, timing = record.get("usage") or {}, record.get("timing") or {}
    upstream = record.get("upstream") or {}
    told = [
        f"{kind_of(record)} {record.get('status') or ''}".strip(),
        record["scenario"],
        clock(record["created_at"]),
        record.get("model") or "",
        f"at {upstream['name']}" if upstream.get("name") else "",
        f"HTTP {record['http_status']}" if record.get("http_status") else "",
        "streamed" if record.get("stream") else "",
    ]
    counts = [
        _counted(usage.get("input_tokens"), "tokens in"),
        _counted(usage.get("output_tokens"), "out"),
        _counted(usage.get("cached_tokens") or None, "cached"),
        _cost(usage),
        _counted(timing.get("ttft_ms"), "ms to the first token"),
        _counted(timing.get("total_ms"), "ms"),
    ]
    lines = [record["agent_record_id"], ", ".join(filter(None, told)), ", ".join(filter(None, counts))]
    if error := record.get("error"):
        lines.append(f"! {error.get('type') or 'error'}: {error['message']}")
    if record.get("superseded_by"):
        lines.append(f"the client sent it again: {record['superseded_by']} counts instead")
    if record.get("dropped"):
        lines.append(f"dropped on the way: {', '.join(record['dropped'])}")
    tags = (record.get("metadata") or {}).get("tags") or {}
    lines.append("  ".join(f"{key} {value}" for key, value in tags.items()))
    return [line for line in lines if line]


def _cost(usage: dict[str, Any]) -> str:
    unknown = usage.get("cost") is None and usage.get("input_tokens") is not None
    return "price unknown" if unknown else money(usage.get("cost"))


def _counted(value: float | None, what: str) -> str:
    return "" if value is None else f"{value:.0f} {what}"


def story(record: dict[str, Any]) -> str:
    """The release that served it, who reported on it, what was decided, which step it entered."""
    release = record.get("release")
    lines = []
    if release:
        what = f"{release['operation']} at {clock(release['recorded_at'])}"
        lines.append(
            f"served by release {short_id(release['release_id'])} ({what}). {release['message'] or ''}"
        )
    verdicts = record.get("verdicts") or []
    for report in record.get("reports") or []:
        lines += ["", f"report {report['agent_record_id']}: {feedback_text(report)}"]
        for verdict in verdicts:
            if verdict["report"] == report["agent_record_id"]:
                told = pair_sentence(verdict).partition(": ")[2]
                lines.append(f"  {verdict['recipe']}: {told}")
    for step in record.get("steps") or []:
        told = step.get("outcome") or step.get("state")
        lines += ["", f"step {step['step']}: {told}. {step.get('decision') or ''}".rstrip()]
    if not record.get("reports") and not record.get("superseded_by"):  # its facts say so
        lines += ["", _without_report(record)]
    if names := record.get("aliases"):
        lines += ["", f"also known as {', '.join(names)}"]
    return "\n".join(lines).strip()


def _without_report(record: dict[str, Any]) -> str:
    if record.get("kind") == "turn" and record.get("status") == "complete":
        return "no report names it yet; the inbox (i) scores it"
    return "no report names it, and none could teach: it is no finished turn"


def raw_text(encoded: str) -> str:
    """Stored bytes as text; JSON is laid out."""
    body = base64.b64decode(encoded).decode(errors="replace")
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except ValueError:
        return body
