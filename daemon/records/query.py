"""Reading records: one, many, and the forms in which clients and recipes see them."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, LargeBinary, RowMapping, Select, bindparam, exists, select, tuple_

from daemon.records.bodies import load_body
from daemon.records.retries import counting
from daemon.store.codec import load
from daemon.store.quick import Quick
from daemon.store.schema import aliases, pairs, records, reports
from daemon.wire.bridge.crossing import read_answer
from daemon.wire.codec import codec_for
from daemon.wire.scrub import masked_name
from daemon.wire.values import load_object, plain
from reef.errors import Invalid, NotFound, ReefError
from reef.feedback import Exchange, Usage
from reef.runtime import Parsed

MAX_LIMIT = 1000
_NAMES = frozenset({"role", "type", "id", "object", "model", "finish_reason", "stop_reason"})
_USAGE = ("input_tokens", "output_tokens", "cached_tokens", "cost")
Stored = Mapping[str, Any] | RowMapping
"""A row of `records`."""

_BY_ID = Quick(select(records).where(records.c.id == bindparam("id")))


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records to list. `after_sequence` pages within one scenario, `after` (an id) over all."""

    scenario: str | None = None
    after_sequence: int = 0
    after: str | None = None
    limit: int = 50
    request_type: str | None = None
    kind: str | None = None
    status: str | None = None
    run: str | None = None
    session: str | None = None
    reported: bool | None = None
    """Whether a report names them."""
    descending: bool = False
    payload: bool = False
    text: str | None = None
    """What was said in them, in any case of letters."""


_ALL = select(records)
_TOLD = select(*(column for column in records.c if not isinstance(column.type, LargeBinary)))
"""What is told of a record without its bodies."""


def find(connection: Connection, record_id: str, scenario: str | None = None) -> Stored:
    """One row by its id. Raises `NotFound`."""
    row = _BY_ID.first(connection, {"id": record_id})
    if row is None or scenario not in (None, row["scenario"]):
        where = f" in scenario `{scenario}`" if scenario else ""
        raise NotFound(f"no record `{record_id}`{where}", hint="see `reef records`")
    return row


def listing(connection: Connection, wanted: Filter) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The records, and the last one that was looked at. With a `text` that many of `limit` are looked
    through, so fewer are found, or none, where there are more."""
    if not 1 <= wanted.limit <= MAX_LIMIT:
        raise Invalid(f"limit {wanted.limit} is out of range", hint=f"use 1 to {MAX_LIMIT}")
    query = _filtered(_ALL if wanted.payload or wanted.text else _TOLD, wanted)
    if wanted.after is not None:
        last = find(connection, wanted.after, wanted.scenario)
        mine: Any = records.c.sequence
        theirs: Any = last["sequence"]
        if wanted.scenario is None:
            mine, theirs = tuple_(records.c.created_at, records.c.id), (last["created_at"], last["id"])
        query = query.where(mine < theirs if wanted.descending else mine > theirs)
    if wanted.scenario is None:
        if wanted.after_sequence:
            raise Invalid(
                "`after_sequence` counts within one scenario", hint="name it, or page with after=RECEIPT"
            )
        key = records.c.created_at
        order: list[Any] = [key.desc(), records.c.id.desc()] if wanted.descending else [key, records.c.id]
    else:
        order = [records.c.sequence.desc() if wanted.descending else records.c.sequence]
    rows = connection.execute(query.order_by(*order).limit(wanted.limit)).mappings().all()
    seen = to_wire(connection, rows[-1]) if rows else None
    if wanted.text:
        sought = wanted.text.casefold()
        rows = [row for row in rows if _says(connection, row, sought)]
    return [to_wire(connection, row, payload=wanted.payload) for row in rows], seen


def _says(connection: Connection, row: Stored, sought: str) -> bool:
    said = to_wire(connection, row, payload=True)["payload"]
    return any(sought in text.casefold() for text in _strings(said))


def _strings(value: Any) -> Iterator[str]:
    """Every text in it but what only names roles, kinds and ids."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in _NAMES:
                yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _filtered(query: "Select[Any]", wanted: Filter) -> "Select[Any]":
    if wanted.scenario is not None:
        query = query.where(records.c.scenario == wanted.scenario)
        if wanted.after_sequence:
            after = (
                records.c.sequence < wanted.after_sequence
                if wanted.descending
                else (records.c.sequence > wanted.after_sequence)
            )
            query = query.where(after)
    for name in ("request_type", "kind", "status", "run", "session"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(records.c[name] == masked_name(value))
    if wanted.reported is not None:
        named = exists().where(pairs.c.receipt == records.c.id)
        query = query.where(named if wanted.reported else ~named)
    return query


def to_wire(
    connection: Connection, row: Stored, *, payload: bool = False, raw: bool = False
) -> dict[str, Any]:
    """A row in the form of protocol section 4."""
    wire: dict[str, Any] = {
        "agent_record_id": row["id"],
        "scenario": row["scenario"],
        "sequence": row["sequence"],
        "request_type": row["request_type"],
        "created_at": row["created_at"],
        "metadata": load(row["metadata"], {}),
    }
    if row["request_type"] != "inference":
        if payload:
            wire["payload"] = _report_payload(connection, row["id"])
        return wire
    for key in (
        "kind",
        "status",
        "superseded_by",
        "run",
        "session",
        "release_id",
        "content_id",
        "dialect",
        "model",
    ):
        wire[key] = row[key]
    wire["superseded_by"] = counting(connection, row["id"], row["superseded_by"])
    wire["upstream"] = {
        "name": row["upstream_name"],
        "model": row["upstream_model"],
        "request_id": row["upstream_request_id"],
    }
    wire["stream"] = row["stream"]
    wire["http_status"] = row["http_status"]
    wire["usage"] = {key: row[key] for key in _USAGE}
    wire["timing"] = {key: row[key] for key in ("ttft_ms", "upstream_ms", "total_ms")}
    wire["dropped"] = load(row["dropped"], [])
    failed = row["error_message"] is not None
    wire["error"] = {"type": row["error_type"], "message": row["error_message"]} if failed else None
    if payload:
        wire["payload"] = _payload(connection, row)
    if raw:
        wire["raw"] = _raw(connection, row)
    return wire


def _payload(connection: Connection, row: Stored) -> dict[str, Any]:
    body = load_body(connection, row["request_pieces"])
    request = load_object(body) or {}
    response = load_body(connection, row["response_pieces"])
    return request | {"response": _read(row, response, body).response}


def _read(row: Stored, response: bytes, request: bytes) -> Parsed:
    """The answer in the client's dialect; where the upstream spoke another, `metadata.bridged` names it."""
    return read_answer(
        row["dialect"],
        response,
        stream=bool(row["stream"]),
        bridged=load(row["metadata"], {}).get("bridged"),
        request=request,
        receipt=row["id"],
    )


def _raw(connection: Connection, row: Stored) -> dict[str, str]:
    forwarded = row["forwarded_pieces"]
    bodies = {
        "request": row["request_pieces"],
        "forwarded": row["request_pieces"] if forwarded is None else forwarded,
        "response": row["response_pieces"],
    }
    return {name: base64.b64encode(load_body(connection, hashes)).decode() for name, hashes in bodies.items()}


def _report_payload(connection: Connection, report_id: str) -> dict[str, Any]:
    row = connection.execute(select(reports).where(reports.c.id == report_id)).mappings().first()
    if row is None:
        return {}
    return {
        "score": row["score"],
        "feedback": load(row["feedback"]),
        "references": load(row["references"]),
        "metadata": load(row["metadata"]),
        "preferred": row["preferred"],
        "over": row["over"],
    }


def exchange_of(connection: Connection, row: Stored) -> Exchange:
    """A row as a recipe sees it: the request's own messages, without what Reef put in front."""
    codec = codec_for(row["dialect"])
    body = load_body(connection, row["request_pieces"])
    try:
        messages = tuple(plain(codec.facts(body).messages))
    except (ReefError, RecursionError):
        messages = ()
    parsed = _read(row, load_body(connection, row["response_pieces"]), body)
    return Exchange(
        receipt=row["id"],
        scenario=row["scenario"],
        created_at=datetime.fromisoformat(row["created_at"]),
        model=row["model"],
        release_id=row["release_id"],
        content_id=row["content_id"],
        messages=messages,
        answer=parsed.text,
        usage=Usage(*(row[key] for key in _USAGE)),
    )


def story(connection: Connection, row: Stored) -> dict[str, Any]:
    """What became of one exchange: who reported on it, what was decided, which step it entered."""
    joined = connection.execute(
        select(pairs, reports.c.score, reports.c.feedback)
        .join(reports, reports.c.id == pairs.c.report)
        .where(pairs.c.receipt == row["id"])
        .order_by(pairs.c.updated_at)
    ).mappings()
    rows = list(joined)
    told = {
        pair["report"]: {
            "agent_record_id": pair["report"],
            "score": pair["score"],
            "feedback": load(pair["feedback"]),
        }
        for pair in rows
    }
    keys = ("report", "recipe", "state", "reason", "message", "step")
    verdicts = [{key: pair[key] for key in keys} for pair in rows]
    names = connection.execute(
        select(aliases.c.alias).where(aliases.c.scenario == row["scenario"], aliases.c.record_id == row["id"])
    ).scalars()
    return {"reports": list(told.values()), "verdicts": verdicts, "aliases": list(names)}
