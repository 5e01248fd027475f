"""`reef report`: feedback on receipts."""

import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from reef.client import Client
from reef.errors import Invalid, NotFound, ReefError
from reef.home import expanded
from reef_cli.exits import UsageError
from reef_cli.options import JsonFlag, Scenario
from reef_cli.output import emit, hint
from reef_cli.render import reports as render
from reef_cli.session import command

app = command()

JUDGING_PATIENCE_S = 2.0
LOOK_BACK = 50


@app.command()
def report(
    receipts: Annotated[
        list[str] | None, typer.Argument(metavar="[RECEIPT]...", help="Receipts, run:ID or session:ID.")
    ] = None,
    score: Annotated[
        float | None, typer.Option("--score", metavar="X", help="A number; 0 bad, 1 good.")
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option("--feedback", metavar="TEXT|@FILE|JSON", help="What was right or wrong (@-: stdin)."),
    ] = None,
    correction: Annotated[
        str | None,
        typer.Option("--correction", metavar="TEXT", help="The answer that would have been right."),
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="The latest finished turn.")] = False,
    report_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its own id: sent twice, it is one report.")
    ] = None,
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """Give feedback on receipts, and say what became of each."""
    told = read_feedback(feedback, correction)
    if score is not None and not math.isfinite(score):
        raise UsageError("--score must be a finite number", hint="for example 1 or 0.25")
    if score is None and told is None:
        raise UsageError(
            "a report needs something to say", hint="add --score X, --feedback TEXT or --correction TEXT"
        )
    if bool(receipts) == last:
        raise UsageError(
            "a report needs receipts, or --last", hint='reef report --score 0 --feedback "..." --last'
        )
    with Client() as client:
        references = receipts or [latest_turn(client, scenario)]
        try:
            answer = client.report(
                references, score=score, feedback=told, scenario=scenario, agent_record_id=report_id
            )
        except Invalid as error:
            raise _unknown(client, references, error) or error from None
        data = {**answer, **_judged(client, answer)}
    emit(data, render.reported, as_json=as_json)
    hint(answer)


def read_feedback(feedback: str | None, correction: str | None) -> str | dict[str, Any] | None:
    """What the two options say together: a text as it is, an object with `text` and `correction` else.

    Raises:
        UsageError: a file that cannot be read, what starts like JSON and is none, a list, or nothing at all.
    """
    text = _file_or_text(feedback) if feedback is not None else None
    for flag, words in (("--feedback", text), ("--correction", correction)):
        if words is not None and not words.strip():
            raise UsageError(f"{flag} is empty", hint="say what was right or wrong, or leave it out")
    if text is not None and _is_list(text):
        raise UsageError("--feedback is a JSON list", hint="give a text or a JSON object")
    given: str | dict[str, Any] | None = text
    if text is not None and text.lstrip().startswith("{"):
        try:
            given = json.loads(text)
        except ValueError as error:
            raise UsageError(
                f"the feedback starts like JSON but is none: {error}", hint="check the quotes"
            ) from error
    if given == {} and correction is None:
        raise UsageError("--feedback says nothing", hint="say what was right or wrong, or leave it out")
    if correction is None:
        return given
    if isinstance(given, dict) and given.get("correction", correction) != correction:
        raise UsageError(
            "two corrections were given", hint="leave out --correction, or the one in --feedback"
        )
    return {
        **(given if isinstance(given, dict) else {"text": given} if given else {}),
        "correction": correction,
    }


def latest_turn(client: Client, scenario: str | None) -> str:
    """The receipt of the latest turn that finished, in `scenario` or in any that is not archived.

    Raises:
        NotFound: there is none.
    """
    if scenario is not None:
        found = _finished(client, scenario)
    else:
        served = {row["scenario"] for row in client.scenarios()["scenarios"]}
        latest = _finished(client, None)
        found = [row for row in latest if row["scenario"] in served]
        if latest and not found:  # the latest traffic is of scenarios that are archived by now
            each = [row for name in served for row in _finished(client, name)[:1]]
            found = sorted(each, key=lambda row: str(row.get("created_at")), reverse=True)
    if found:
        return str(found[0]["agent_record_id"])
    raise NotFound("there is no finished turn to report on", hint="send a request first: see `reef env`")


def _unknown(client: Client, references: Sequence[str], error: Invalid) -> NotFound | None:
    """`error` as what it means to a script, where the receipt that it names is no record at all."""
    named = next((name for name in references if f"`{name}`" in error.message), None)
    if named is None or named.startswith(("run:", "session:")):
        return None
    try:
        client.explain(named)
    except NotFound:
        return NotFound(error.message, hint=error.hint)
    except ReefError:  # the first error says more
        pass
    return None


def _finished(client: Client, scenario: str | None) -> list[dict[str, Any]]:
    """The latest turns that finished, newest first."""
    data = client.records(scenario, limit=LOOK_BACK, request_type="inference", order="desc", payload=False)
    return [row for row in data["records"] if row.get("kind") == "turn" and row.get("status") == "complete"]


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _file_or_text(value: str) -> str:
    if not value.startswith("@"):
        return value
    try:
        if value == "@-":
            text = sys.stdin.read()
            text.encode()  # in some locales bytes that are no text are read as if they were
            return text
        return expanded(Path(value[1:])).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise UsageError(
            f"cannot read {value[1:]}\n{error}", hint="--feedback @FILE names a text file"
        ) from error


def _judged(client: Client, answer: dict[str, Any]) -> dict[str, Any]:
    """The report's state and pairs; reports are judged a moment after they are stored."""
    name = answer["agent_record_id"]
    deadline = time.monotonic() + JUDGING_PATIENCE_S
    while True:
        rows = client.reports(answer["scenario"], agent_record_id=name)["reports"]
        mine: dict[str, Any] = next((row for row in rows if row["agent_record_id"] == name), {})
        if mine.get("pairs") or time.monotonic() > deadline:
            return {"state": mine.get("state"), "pairs": mine.get("pairs") or []}
        time.sleep(0.02)
