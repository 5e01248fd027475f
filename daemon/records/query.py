"""Reading a record, and the forms in which clients and recipes see it."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, select

from daemon.records.bodies import load_body
from daemon.records.retries import counting
from daemon.store.codec import load
from daemon.store.quick import Quick
from daemon.store.schema import aliases, pairs, records, reports
from daemon.wire.bridge.crossing import read_answer
from daemon.wire.codec import codec_for
from daemon.wire.values import load_object, plain
from reef.errors import NotFound, ReefError
from reef.feedback import Exchange, Usage
from reef.runtime import Parsed

_USAGE = ("input_tokens", "output_tokens", "cached_tokens", "cost")
Stored = Mapping[str, Any] | RowMapping
"""A row of `records`."""

_BY_ID = Quick(select(records).where(records.c.id == bindparam("id")))


def find(connection: Connection, record_id: str, scenario: str | None = None) -> Stored:
    """One row by its id. Raises `NotFound`."""
    row = _BY_ID.first(connection, {"id": record_id})
    if row is None or scenario not in (None, row["scenario"]):
        where = f" in scenario `{scenario}`" if scenario else ""
        raise NotFound(f"no record `{record_id}`{where}", hint="see `reef records`")
    return row


def to_wire(
    connection: Connection, row: Stored, *, payload: bool = False, raw: bool = False
) -> dict[str, Any]:
    """A row in the form of protocol section 4."""
    wire = {
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
    wire |= {
        "kind": row["kind"],
        "status": row["status"],
        "superseded_by": counting(connection, row["id"], row["superseded_by"]),
        "run": row["run"],
        "session": row["session"],
        "release_id": row["release_id"],
        "content_id": row["content_id"],
        "dialect": row["dialect"],
        "model": row["model"],
        "upstream": {
            "name": row["upstream_name"],
            "model": row["upstream_model"],
            "request_id": row["upstream_request_id"],
        },
        "stream": row["stream"],
        "http_status": row["http_status"],
        "usage": {
            "input_tokens": row["input_tokens"],
            "output_tokens": row["output_tokens"],
            "cached_tokens": row["cached_tokens"],
            "cost": row["cost"],
        },
        "timing": {
            "ttft_ms": row["ttft_ms"],
            "upstream_ms": row["upstream_ms"],
            "total_ms": row["total_ms"],
        },
        "dropped": load(row["dropped"], []),
    }
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
