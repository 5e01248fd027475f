"""The release history in lines, in the manner of git."""

from typing import Any

from reef_cli.render.text import SHORT, clip, indent, number, short, when

Row = dict[str, Any]


def is_shown(row: Row, *, everything: bool) -> bool:
    """Whether `reef log` shows a row: what was served or waits; with `--all` also what was rejected."""
    published = (row.get("metrics") or {}).get("published", True) or row["operation"] != "training"
    return everything or published or bool(row.get("pending"))


def shown_id(row: Row) -> str:
    """The id of what a row brought: its release, or the candidate that is not served; empty where a step
    brought neither (its `release_id` is the head it ran on)."""
    unserved = not (row.get("metrics") or {}).get("published", True)
    return str((row.get("candidate_id") if unserved else row["release_id"]) or "")


def marks(row: Row) -> str:
    """`(HEAD, tag v1)`, `(waits for review)`, or nothing."""
    words = ["HEAD"] if row.get("current") else []
    words += [f"tag {tag}" for tag in row.get("tags") or []]
    words += ["waits for review"] if row.get("pending") else []
    if not is_shown(row, everything=False):
        outcome = _outcome(row)
        words.append("promoted" if outcome == "select" else outcome or "not published")
    return f"({', '.join(words)})" if words else ""


def oneline(row: Row, columns: int) -> str:
    """One release on one line."""
    title = (row.get("message") or "").partition("\n")[0] or row["operation"]
    name = short(shown_id(row)).ljust(SHORT)
    start = " ".join(part for part in (name, f"step:{row['step']}", marks(row)) if part)
    return f"{start} {clip(title, max(columns - len(start) - 1, 20))}"


def entry(row: Row) -> str:
    """One release in full."""
    made = f"release {shown_id(row)}" if shown_id(row) else "no release"
    lines = [f"{made} {marks(row)}".rstrip()]
    lines.append(f"Step:    {row['step']}, {row['operation']} by {row.get('recipe') or '-'}")
    lines.append(f"Date:    {when(row.get('recorded_at'))}")
    if gate := gate_line(row.get("metrics") or {}):
        lines.append(f"Gate:    {gate}")
    if reason := ((row.get("metrics") or {}).get("selection") or {}).get("reason"):
        lines.append(f"Why:     {reason}")
    if cost := cost_line((row.get("metrics") or {}).get("cost") or {}):
        lines.append(f"Cost:    {cost}")
    if message := (row.get("message") or "").strip():
        lines += ["", indent(message)]
    return "\n".join(lines)


def gate_line(metrics: dict[str, Any]) -> str:
    """`select (sequential): 8 wins, 1 loss, 2 ties; gain 0.6`."""
    selection = metrics.get("selection") or {}
    if not selection.get("outcome"):
        return ""
    told = f"{selection['outcome']} ({selection.get('policy') or '-'})"
    sides_seen = [metrics.get(many) for many in ("wins", "losses", "ties")]
    if sides_seen == [0, 0, 0]:
        return f"{told}: not measured"
    if metrics.get("wins") is not None:
        sides = (("wins", "win"), ("losses", "loss"), ("ties", "tie"))
        told += ": " + ", ".join(_counted(metrics.get(many) or 0, one, many) for many, one in sides)
        gain = (metrics.get("evidence") or {}).get("gain")
        told += f"; gain {number(gain)}" if gain is not None else ""
    return told


def _counted(amount: int, one: str, many: str) -> str:
    return f"{amount} {one if amount == 1 else many}"


def cost_line(cost: dict[str, Any]) -> str:
    """`24 episodes, 4120 tokens, $0.01, 31 s`, as far as it is known."""
    tokens = (cost.get("input_tokens") or 0) + (cost.get("output_tokens") or 0)
    money = cost.get("money")
    parts = [
        f"{cost['episodes']} episodes" if cost.get("episodes") else "",
        f"{tokens} tokens" if tokens else "",
        f"${number(money)}" if money else "",
        f"{cost['seconds']:.0f} s" if cost.get("seconds") else "",
    ]
    return ", ".join(part for part in parts if part)


def log(rows: list[Row], *, short_form: bool, columns: int) -> str:
    """Rows, newest first, as `git log` would."""
    if not rows:
        return "no releases yet"
    if short_form:
        return "\n".join(oneline(row, columns) for row in rows)
    return "\n\n".join(entry(row) for row in rows)


def moved(data: dict[str, Any]) -> str:
    """After a checkout or a promotion: what is served now."""
    content = short(data["content_id"])
    return f"{data.get('scenario', 'it')} now serves {short(data['release_id'])} (content {content})"


def _outcome(row: Row) -> str:
    return str(((row.get("metrics") or {}).get("selection") or {}).get("outcome") or "")
