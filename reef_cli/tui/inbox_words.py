"""The inbox in words: rows and details of turns and of reports."""

from datetime import datetime
from typing import Any

from reef_cli.render.reports import REASONS, feedback_text
from reef_cli.tui.conversation import answer_of, prompt_of
from reef_cli.tui.outbox import Held, Outbox
from reef_cli.tui.text import age, number, one_line
from reef_cli.tui.turns import Turns, wholes
from reef_cli.tui.widgets.row_list import Row

STATES = {"pending": "waits", "eligible": "in line", "ineligible": "no count", "consumed": "taught"}
_TONES = {"pending": "busy", "ineligible": "bad", "consumed": "good"}


def heading(turns: Turns, states: list[str], *, marked: int, whole: bool, waiting: bool) -> str:
    """How much there is (`states` are the reports'), and what the next key goes to. `waiting`: something is
    held and no daemon answers."""
    more = "+" if turns.more else ""
    told = (
        f"{len(turns.open)}{more} turns without feedback; {states.count('pending')} reports wait, "
        f"{states.count('ineligible')} did not count, {states.count('eligible')} in line (r)"
    )
    told += "\nDigits are tenths (1 is 0.1), + is 1."
    if waiting:
        told += " The daemon is away: what is held goes out when it is back (z: undo)."
    if whole:
        told += "\nThe next score goes to the whole session (a or escape: only to the turn)."
    if marked:
        told += f"\n{marked} marked: the next score or feedback goes to each of them."
    return told


def held_for(turn: dict[str, Any], outbox: Outbox) -> Held | None:
    """The report on a turn, or on the whole it belongs to, that waits to be sent."""
    return outbox.get(turn["agent_record_id"]) or outbox.get(wholes(turn) or "")


def turn_row(turn: dict[str, Any], outbox: Outbox, *, marked: bool, now: datetime, away: bool) -> Row:
    """`away`: no daemon answers, so what is held stays held."""
    held = held_for(turn, outbox)
    told = waits(held, outbox, away=away) if held else ""
    cells = (age(turn["created_at"], now), told, one_line(prompt_of(turn["payload"])[:400]))
    answer = one_line(answer_of(turn["payload"])[:400])
    if turn["status"] != "complete":
        answer = f"! {turn['status']} {answer}"
    return Row(turn["agent_record_id"], (*cells, answer), "busy" if held else "", marked)


def waits(held: Held, outbox: Outbox, *, away: bool) -> str:
    """`0+text, in 3 s`: what it says and when it goes out; `held` while nobody is there to take it."""
    return f"{said(held)}, {'held' if away else f'in {outbox.seconds_left(held)} s'}"


def said(held: Held) -> str:
    """`1`, `0+text`, `fix`: what a held report says."""
    text = held.feedback
    told = "fix" if isinstance(text, dict) else "text" if text else ""
    whole = " all" if ":" in held.reference else ""
    return "+".join(part for part in (number(held.score), told) if part) + whole


def turn_head(turn: dict[str, Any], held: Held | None) -> list[str]:
    where = "  ".join(f"{key} {turn[key]}" for key in ("session", "run") if turn.get(key))
    lines = [f"{turn['agent_record_id']}  {turn.get('model') or ''}  {where}".rstrip()]
    if turn["status"] != "complete":
        lines.append(f"! this exchange {turn['status']}; a report on it will not count")
    if held and held.feedback:
        text = held.feedback["correction"] if isinstance(held.feedback, dict) else held.feedback
        lines.append(f"{'correction' if isinstance(held.feedback, dict) else 'feedback'}: {text}")
    return lines


def named_by(report: dict[str, Any]) -> list[str]:
    """The receipts of the exchanges that a report is on."""
    return [pair["receipt"] for pair in report["pairs"] if pair.get("receipt")]


def report_row(report: dict[str, Any], outbox: Outbox, now: datetime, *, away: bool) -> Row:
    """`outbox`: what is held on the turn it names is shown in place of what it says."""
    held = next((held for receipt in named_by(report) if (held := outbox.get(receipt))), None)
    cells = (
        age(report["created_at"], now),
        STATES[report["state"]],
        f"now {waits(held, outbox, away=away)}" if held else one_line(feedback_text(report)),
        one_line(why(report)),
    )
    return Row(report["agent_record_id"], cells, _TONES.get(report["state"], ""))


def why(report: dict[str, Any]) -> str:
    """The reason of the pair that gave the report its state."""
    for pair in report["pairs"]:
        if pair["state"] == report["state"]:
            return _reason(pair)
    return "not judged yet"


def _reason(pair: dict[str, Any]) -> str:
    reason = pair.get("reason") or ""
    return str(pair.get("message") or REASONS.get(reason) or reason.removeprefix("x:").replace("_", " "))


def report_detail(report: dict[str, Any]) -> str:
    """All of a report: what it says, and what became of each exchange it names."""
    verdict = {
        "pending": "This report waits.",
        "eligible": "This report counts.",
        "ineligible": "This report did not count.",
        "consumed": "This report taught.",
    }[report["state"]]
    lines = [f"{verdict} {sentence(why(report))}", ""]
    if report.get("score") is not None:
        lines.append(f"score {number(report['score'])}")
    feedback = report.get("feedback")
    given = feedback if isinstance(feedback, dict) else {"feedback": feedback} if feedback else {}
    lines += [f"{name}: {text}" for name, text in given.items()]
    for pair in report["pairs"]:
        code = f" ({pair['reason']})" if pair.get("reason") else ""
        lines.append(f"{pair['receipt'] or '(no receipt)'}  {STATES[pair['state']]}{code}")
        lines.append(f"  {pair.get('recipe') or ''}: {_reason(pair)}")
    return "\n".join([*lines, f"report {report['agent_record_id']}"])


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""
