"""Taking in a report: what a client may send, and storing it before anything is decided."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import orjson
from sqlalchemy import Connection, insert, select

from daemon.records.book import RecordBook, next_sequence
from daemon.records.references import resolve
from daemon.store.codec import dump
from daemon.store.schema import pairs, records, reports
from reef.errors import Conflict, Invalid
from reef.ids import check_client_id, new_receipt, now, rfc3339

_KNOWN = ("score", "feedback", "references", "preferred", "over", "metadata", "agent_record_id")

_INSTRUCTION_KEYS = ("text", "session", "release_id", "agent_record_id")
MAX_INSTRUCTION = 4000


@dataclass(frozen=True, slots=True)
class Intake:
    """A report as it was sent, checked for form. `ignored` are the keys that mean nothing here."""

    id: str | None
    score: float | None
    feedback: str | dict[str, Any] | None
    references: tuple[str, ...]
    preferred: str | None
    over: str | None
    metadata: dict[str, Any]
    ignored: tuple[str, ...]

    def digest(self) -> bytes:
        """Equal for equal content, whatever the order of its keys."""
        content = [self.score, self.feedback, self.references, self.preferred, self.over, self.metadata]
        return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def parse(body: Any) -> Intake:
    """Check the form of a report (protocol section 3).

    Raises:
        Invalid: naming the field.
    """
    if not isinstance(body, Mapping):
        raise Invalid("a report is a JSON object", hint='for example {"score": 1, "references": ["..."]}')
    chosen = _text(body, "agent_record_id")
    return Intake(
        id=check_client_id(chosen, what="agent_record_id") if chosen is not None else None,
        score=_score(body.get("score")),
        feedback=_feedback(body.get("feedback")),
        references=_references(body.get("references")),
        preferred=_text(body, "preferred"),
        over=_text(body, "over"),
        metadata=_metadata(body.get("metadata")),
        ignored=tuple(key for key in body if key not in _KNOWN),
    )


def parse_instruction(body: Any) -> Intake:
    """Check the form of an instruction (protocol section 8): `text`, and where it comes from.

    Raises:
        Invalid: naming the field.
    """
    if not isinstance(body, Mapping):
        raise Invalid("an instruction is a JSON object", hint='for example {"text": "Use metric units."}')
    text, chosen = _text(body, "text"), _text(body, "agent_record_id")
    if text is None or not 1 <= len(text.strip()) <= len(text) <= MAX_INSTRUCTION:
        raise Invalid(f"`text` must have 1 to {MAX_INSTRUCTION} characters", hint="say what is to change")
    origin = {key: value for key in ("session", "release_id") if (value := _text(body, key)) is not None}
    return Intake(
        id=check_client_id(chosen, what="agent_record_id") if chosen is not None else None,
        score=None,
        feedback=text,
        references=(),
        preferred=None,
        over=None,
        metadata=origin,
        ignored=tuple(key for key in body if key not in _INSTRUCTION_KEYS),
    )


def _score(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"`score` must be a number, not {value!r}", hint="for example 1 or 0.25")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Invalid("`score` must be finite", hint="for example 1 or 0.25")
    return number


def _feedback(value: Any) -> str | dict[str, Any] | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        correction = value.get("correction")
        if correction is not None and not isinstance(correction, str):
            raise Invalid(
                "`feedback.correction` must be a string", hint="the answer that would have been right"
            )
        return value
    raise Invalid("`feedback` must be a string or an object")


def _references(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Invalid("`references` must be a list of receipts", hint='for example ["0198..."]')
    for at, name in enumerate(value):
        if name in value[:at]:
            raise Invalid(f"reference `{name}` is there twice", hint="name each receipt once")
    return tuple(value)


def _metadata(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid("`metadata` must be an object")
    return value


def _text(body: Mapping[str, Any], key: str) -> str | None:
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"`{key}` must be a string")
    return value


def store_report(connection: Connection, book: RecordBook, scenario: str, recipe: str, report: Intake) -> str:
    """Store a report with its pairs, undecided, and return its id. Safe to repeat with the same id.

    Raises:
        Invalid: a reference is unknown, foreign, twice there or no inference.
        Conflict: the id is taken by something else.
    """
    if report.id is not None and (known := _known_id(connection, report, scenario, "report")):
        return known
    receipts = resolve(connection, book, scenario, report.references)
    for name in (report.preferred, report.over):
        if name is not None:
            resolve(connection, book, scenario, [name])
    report_id = _insert(connection, book, scenario, report, "report", receipts)
    undecided = {"state": "pending", "reason": "waiting_for_record", "message": "not judged yet"}
    _insert_pairs(connection, scenario, recipe, report_id, receipts, undecided)
    return report_id


def store_instruction(
    connection: Connection, book: RecordBook, scenario: str, recipe: str, instruction: Intake
) -> str:
    """Store what somebody asks for in words, as a report that is a batch of its own; returns its id. Safe to
    repeat with the same id.

    Raises:
        Conflict: the id is taken by something else.
    """
    if instruction.id is not None and (known := _known_id(connection, instruction, scenario, "train")):
        return known
    instruction_id = _insert(connection, book, scenario, instruction, "train", [])
    waits = {
        "state": "eligible",
        "reason": "waiting_for_batch",
        "message": "an instruction: its step is next",
    }
    _insert_pairs(connection, scenario, recipe, instruction_id, [], waits)
    return instruction_id


def _insert(
    connection: Connection,
    book: RecordBook,
    scenario: str,
    report: Intake,
    request_type: Literal["report", "train"],
    receipts: list[str],
) -> str:
    """The record and the report of it; an instruction needs no judging."""
    report_id = report.id or new_receipt()
    feedback, in_feedback = book.masked_value(report.feedback)
    metadata, in_metadata = book.masked_value(report.metadata)
    connection.execute(
        insert(records),
        {
            "id": report_id,
            "scenario": scenario,
            "sequence": next_sequence(connection, scenario),
            "request_type": request_type,
            "created_at": rfc3339(now()),
            "metadata": dump({"tags": {}, "scrubbed": in_feedback + in_metadata, "imported": False}),
            "digest": report.digest(),
        },
    )
    connection.execute(
        insert(reports),
        {
            "id": report_id,
            "scenario": scenario,
            "score": report.score,
            "feedback": dump(feedback),
            "references": dump(receipts),
            "preferred": report.preferred,
            "over": report.over,
            "metadata": dump(metadata),
            "judged": request_type == "train",
        },
    )
    return report_id


def _insert_pairs(
    connection: Connection,
    scenario: str,
    recipe: str,
    report_id: str,
    receipts: list[str],
    state: Mapping[str, str],
) -> None:
    rows = [
        {
            "report": report_id,
            "receipt": receipt,
            "recipe": recipe,
            "scenario": scenario,
            "updated_at": rfc3339(now()),
            **state,
        }
        for receipt in receipts or [""]
    ]
    connection.execute(insert(pairs), rows)


def _known_id(connection: Connection, report: Intake, scenario: str, request_type: str) -> str | None:
    row = connection.execute(select(records).where(records.c.id == report.id)).mappings().first()
    if row is None:
        return None
    same = (row["request_type"], row["scenario"], row["digest"])
    if same == (request_type, scenario, report.digest()):
        return report.id
    raise Conflict(
        f"`{report.id}` is taken by another {row['request_type']}", hint="choose another agent_record_id"
    )
