"""One event of the daemon on one line."""

from collections.abc import Callable
from typing import Any

from reef_cli.render.status import budget_words
from reef_cli.render.text import clip, number, short

COLUMNS = 160


def event(name: str, data: dict[str, Any]) -> str:
    """`12:30:01 ready-1 step 3 evaluating`; empty for what says nothing to a person."""
    told = _TELL[name](data) if name in _TELL else ""
    if not told:
        return ""
    clock = str(data.get("at") or "")[11:19]
    return clip(" ".join(part for part in (clock, data.get("scenario") or "", told) if part), COLUMNS)


def _record(data: dict[str, Any]) -> str:
    took = f" in {data['total_ms']:.0f} ms" if data.get("total_ms") is not None else ""
    return (
        f"{data.get('kind')} {data.get('status')} {data.get('model') or ''}{took} {data['agent_record_id']}"
    )


def _report(data: dict[str, Any]) -> str:
    score = f" score {number(data['score'])}" if data.get("score") is not None else ""
    return f"report{score} {data['agent_record_id']}"


def _verdict(data: dict[str, Any]) -> str:
    why = f" ({data['reason']})" if data.get("reason") else ""
    return f"{data['state']}{why} {data.get('receipt') or 'no receipt'}"


def _step(data: dict[str, Any]) -> str:
    outcome = f": {data['outcome']}" if data.get("outcome") else ""
    decision = f", {data['decision']}" if data.get("decision") else ""
    return f"step {data['step']} {data['state']}{outcome}{decision}"


def _episode(data: dict[str, Any]) -> str:
    return f"step {data['step']} episode {data['done']} of {data['total']}"


def _release(data: dict[str, Any]) -> str:
    waits = " waits for review" if data.get("pending") else ""
    return f"release {short(data['release_id'])} by {data['operation']}{waits}"


def _budget(data: dict[str, Any]) -> str:
    if data["share"] is None:
        return f"an answer without usage is in no budget: {budget_words(data)}"
    return f"budget at {data['share']:.0%}: {budget_words(data)}"


def _error(data: dict[str, Any]) -> str:
    hint = f" ({data['hint']})" if data.get("hint") else ""
    return f"error in {data['where']}: {data['message']}{hint}"


def _gap(data: dict[str, Any]) -> str:
    return f"events after {data['after']} were missed"


_TELL: dict[str, Callable[[dict[str, Any]], str]] = {
    "record": _record,
    "report": _report,
    "verdict": _verdict,
    "step": _step,
    "episode": _episode,
    "release": _release,
    "budget": _budget,
    "error": _error,
    "gap": _gap,
}
