"""/reef/records: reading what passed through."""

from collections.abc import Sequence
from typing import Any, get_args

from starlette.requests import Request
from starlette.routing import Route

from daemon.growth import steps
from daemon.http.answers import Json
from daemon.http.rooms import int_param, rooms
from daemon.records.draft import RecordKind, RecordStatus
from daemon.records.listing import MAX_LIMIT, Filter, listing
from daemon.records.query import find, story, to_wire
from daemon.records.references import by_any_name
from daemon.releases import catalog
from daemon.store.codec import load
from reef.errors import Invalid

_ORDERS = {"asc": False, "desc": True}
_TYPES = ("inference", "report", "train")


def _word(request: Request, key: str, known: Sequence[str]) -> str | None:
    """One of the words that a filter knows, or none. Raises `Invalid`."""
    word = request.query_params.get(key)
    if word is not None and word not in known:
        raise Invalid(f"there is no {key} `{word[:40]}`", hint=f"one of {', '.join(known)}")
    return word


def _filter(request: Request, scenario: str | None, *, payload: bool) -> Filter:
    query = request.query_params
    order = query.get("order", "asc")
    if order not in _ORDERS:
        raise Invalid(f"there is no order `{order[:40]}`", hint=f"one of {', '.join(_ORDERS)}")
    shown = query.get("payload")
    return Filter(
        scenario=scenario,
        after_sequence=int_param(request, "after_sequence", 0),
        after=query.get("after"),
        limit=int_param(request, "limit", 50, at_least=1, at_most=MAX_LIMIT),
        request_type=_word(request, "request_type", _TYPES),
        kind=_word(request, "kind", get_args(RecordKind)),
        status=_word(request, "status", get_args(RecordStatus)),
        run=query.get("run"),
        session=query.get("session"),
        reported=None if (reported := query.get("reported")) is None else reported in ("1", "true"),
        descending=_ORDERS[order],
        text=query.get("text"),
        payload=payload if shown is None else shown in ("1", "true"),
    )


async def scenario_records(request: Request) -> Json:
    here = rooms(request)
    name = here.scenarios.get(request.path_params["scenario"]).name
    return await _answer(request, _filter(request, name, payload=True))


async def all_records(request: Request) -> Json:
    return await _answer(request, _filter(request, request.query_params.get("scenario"), payload=False))


async def _answer(request: Request, wanted: Filter) -> Json:
    found, last = await rooms(request).store.read(lambda connection: listing(connection, wanted))
    last = last or {"sequence": wanted.after_sequence, "agent_record_id": wanted.after}
    return Json(
        {
            "records": found,
            "next_after_sequence": last["sequence"] if wanted.scenario else None,
            "next_after": last["agent_record_id"],
        }
    )


async def one(request: Request) -> Json:
    """One record with its payload; without a scenario in the path also its story."""
    scenario = request.path_params.get("scenario")
    raw = request.query_params.get("raw") in ("1", "true")
    name = request.path_params["id"]

    def work(connection: Any) -> dict[str, Any]:
        row = find(connection, by_any_name(connection, name, scenario), scenario)
        wire = to_wire(connection, row, payload=True, raw=raw)
        if scenario is None and row["request_type"] == "inference":
            wire |= story(connection, row) | _release(connection, row)
            entered = sorted({told["step"] for told in wire["verdicts"] if told["step"] is not None})
            wire["steps"] = [
                steps.to_wire(steps.get(connection, row["scenario"], number)) for number in entered
            ]
            wire["step"] = wire["steps"][-1] if entered else None
        return wire

    return Json(await rooms(request).store.read(work))


def _release(connection: Any, row: Any) -> dict[str, Any]:
    """The release that served a record, in a few words."""
    release = catalog.release(connection, row["scenario"], row["release_id"])
    if release is None:
        return {"release": None}
    told = {key: release[key] for key in ("step", "release_id", "operation", "recorded_at", "message")}
    return {"release": told | {"metrics": load(release["metrics"])}}


routes = [
    Route("/reef/scenarios/{scenario}/records", scenario_records),
    Route("/reef/scenarios/{scenario}/records/{id}", one),
    Route("/reef/records", all_records),
    Route("/reef/records/{id:path}", one),
]
