"""The daemon's state in lines."""

from typing import Any

from reef.money import dollars
from reef_cli.render.text import count, fields, short, size, table, when


def status(data: dict[str, Any]) -> str:
    """`GET /reef/status` for a person."""
    head = f"reef {data['version']} serves at {data['url']}"
    storage, serving = data.get("storage") or {}, data.get("serving") or {}
    about = fields(
        [
            ("process", f"{data['pid']}, since {when(data.get('started_at'))}"),
            ("home", data["home"]),
            *(("runtime", line) for line in runtimes(serving)),
            ("why", str(serving.get("why") or "")),
            ("storage", _storage(storage)),
        ]
    )
    there = data.get("scenarios") or {}
    warnings = [*(data.get("warnings") or []), *_spent(there), *_uncounted(there)]
    parts = [head, about, *(f"warning: {line}" for line in warnings), *remedies(serving)]
    if data.get("config_changed"):
        parts.append("the configuration has changed; it takes effect after `reef down`, then `reef up`")
    if error := data.get("error"):
        at = f" ({when(error['at'])})" if error.get("at") else ""
        parts.append(f"last error{at}: {error['message']}\nhint: {error.get('hint', '')}")
    if rows := data.get("scenarios"):
        lines = [scenario_row(name, row) for name, row in rows.items()]
        parts.append(table(("SCENARIO", "RECIPE", "RELEASE", "BATCH", "NOW"), lines))
    else:
        parts.append("no scenario yet: the first request makes one")
    return "\n\n".join(parts)


def _spent(scenarios: dict[str, dict[str, Any]]) -> list[str]:
    """The budgets that are used up; a row of the table may have no room for them."""
    return [
        f"a budget of `{name}` is {budget_words(each)}"
        for name, row in scenarios.items()
        for each in row.get("budgets") or []
        if each["spent"]
    ]


def _uncounted(scenarios: dict[str, dict[str, Any]]) -> list[str]:
    """What the budgets of today lack; a row of the table may have no room for it."""
    return [
        f"the budgets of `{name}` lack {count(lacks, 'answer')} of today, which told no usage; "
        'streams of chat completions tell it with "stream_options": {"include_usage": true}'
        for name, row in scenarios.items()
        if (lacks := max((each.get("uncounted") or 0 for each in row.get("budgets") or []), default=0))
    ]


def runtimes(serving: dict[str, Any], *, why_down: bool = True) -> list[str]:
    """One line for each upstream, with what there is to say of its state."""
    lines = []
    for upstream in serving.get("upstreams") or []:
        model = upstream.get("model") or "the model a request names"
        state = f"{upstream['kind']}, {upstream['state']}"
        said = upstream.get("detail") if why_down or upstream["state"] != "down" else ""
        more = f" ({said})" if said else ""
        lines.append(f"{upstream['name']} ({state}): {model} at {upstream['url']}{more}")
    return lines


def remedies(serving: dict[str, Any]) -> list[str]:
    """What mends the upstreams that have trouble, each line once."""
    known: dict[str, list[str]] = {}
    for upstream in serving.get("upstreams") or []:
        if upstream.get("hint"):
            known.setdefault(upstream["hint"], []).append(f"`{upstream['name']}`")
    return [f"hint for {', '.join(names)}: {hint}" for hint, names in known.items()]


def scenario_row(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    """One scenario as the cells of the status table."""
    batch = row.get("batch") or {}
    have = f"{batch['have']}/{batch['need']}" if batch else "-"
    return (name, str(row.get("recipe") or "-"), short(row.get("release_id")), have, _now(row))


def _now(row: dict[str, Any]) -> str:
    budgets = row.get("budgets") or []
    spent = [budget_words(each) for each in budgets if each["spent"]]
    doing = []
    if step := row.get("step"):
        progress = f" {step['done']}/{step['total']}" if step.get("total") else ""
        doing.append(f"step {step['step']} {step['state']}{progress}")
    if waiting := row.get("pending_reviews"):
        amount = waiting if isinstance(waiting, int) else len(waiting)
        doing.append(f"{amount} for review")
    if instructions := row.get("pending_instructions"):
        amount = instructions if isinstance(instructions, int) else len(instructions)
        doing.append(count(amount, "instruction"))
    doing += [budget_words(each) for each in budgets if not each["spent"]]
    return ", ".join([*spent, *doing]) or "idle"


def budget_words(row: dict[str, Any]) -> str:
    """`$4.10 of $5.00 today` and what that lacks; first, where nothing is cut, that it is spent and what
    becomes of requests."""
    if row["unit"] == "usd":
        said = f"{dollars(row['used'])} of {dollars(row['limit'])} today"
    else:
        said = f"{row['used']:,} of {row['limit']:,} tokens today"
    if row["spent"]:
        said = f"spent, {'refused' if row.get('hard') else 'still served'}: {said}"
    lacks = (("unpriced", "record", "unpriced"), ("uncounted", "answer", "not counted"))
    told = [f"{count(row[key], what)} {word}" for key, what, word in lacks if row.get(key)]
    return said + (f" ({', '.join(told)})" if told else "")


def _storage(storage: dict[str, Any]) -> str:
    if not storage:
        return ""
    writable = "" if storage.get("writable", True) else ", NOT WRITABLE"
    records = count(storage.get("records") or 0, "record")
    return f"{storage.get('kind')}, {size(storage.get('bytes') or 0)}, {records}{writable}"


def up(data: dict[str, Any]) -> str:
    """What `reef up` prints: where it serves, from which home, by which runtime and why."""
    lines = [("home", str(data["home"]))]
    runtime = data.get("runtime") or {}
    lines += [("runtime", line) for line in runtimes(runtime, why_down=False)]
    lines.append(("why", str(runtime.get("why") or "")))
    lines.append(("next", 'eval "$(reef env)"'))
    return f"reef serves at {data['url']}\n{fields(lines)}"
