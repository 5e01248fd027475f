"""`reef report`: feedback on receipts."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from reef.client import Client
from reef.errors import NotFound
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
    scenario: Scenario = None,
    as_json: JsonFlag = False,
) -> None:
    """Give feedback on receipts, and say what became of each."""
    told = read_feedback(feedback, correction)
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
        answer = client.report(references, score=score, feedback=told, scenario=scenario)
        data = {**answer, **_judged(client, answer)}
        hints = answer if answer.get("hint") else client.status()
    emit(data, render.reported, as_json=as_json)
    hint(hints)


def read_feedback(feedback: str | None, correction: str | None) -> str | dict[str, Any] | None:
    """What the two options say together: a text as it is, an object with `text` and `correction` else.

    Raises:
        UsageError: a file that cannot be read, or what starts like JSON and is none.
    """
    text = _file_or_text(feedback) if feedback is not None else None
    given: str | dict[str, Any] | None = text
    if text is not None and text.lstrip().startswith("{"):
        try:
            given = json.loads(text)
        except ValueError as error:
            raise UsageError(
                f"the feedback starts like JSON but is none: {error}", hint="check the quotes"
            ) from error
    if correction is None:
        return given
    return {
        **(given if isinstance(given, dict) else {"text": given} if given else {}),
        "correction": correction,
    }


def latest_turn(client: Client, scenario: str | None) -> str:
    """The receipt of the latest turn that finished.

    Raises:
        NotFound: there is none.
    """
    data = client.records(scenario, limit=LOOK_BACK, request_type="inference", order="desc", payload=False)
    for row in data["records"]:
        if row.get("kind") == "turn" and row.get("status") == "complete":
            return str(row["agent_record_id"])
    raise NotFound("there is no finished turn to report on", hint="send a request first: see `reef env`")


def _file_or_text(value: str) -> str:
    if not value.startswith("@"):
        return value
    if value == "@-":
        return sys.stdin.read()
    try:
        return Path(value[1:]).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
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
