"""Listing records: the latest, the next page, those that a filter keeps, those that say something."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, LargeBinary, bindparam, exists, select, tuple_

from daemon.records.query import Stored, find, to_wire
from daemon.scrub import masked_name
from daemon.store.quick import Quick
from daemon.store.schema import pairs, records
from reef.errors import Invalid

MAX_LIMIT = 1000
_NO_TEXT = frozenset({"role", "type", "id", "object", "model", "finish_reason", "stop_reason"})
_BY_NAME = ("request_type", "kind", "status", "run", "session")
"""What a list may be narrowed to by name."""
_ALL = select(records)
_TOLD = select(*(column for column in records.c if not isinstance(column.type, LargeBinary)))
"""What is told of a record without its bodies."""


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


def listing(connection: Connection, wanted: Filter) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The records, and the last one that was looked at. With a `text` that many of `limit` are looked
    through, so fewer are found, or none, where there are more."""
    if not 1 <= wanted.limit <= MAX_LIMIT:
        raise Invalid(f"limit {wanted.limit} is out of range", hint=f"use 1 to {MAX_LIMIT}")
    if wanted.scenario is None and wanted.after_sequence:
        raise Invalid(
            "`after_sequence` counts within one scenario", hint="name it, or page with after=RECEIPT"
        )
    values = _values(connection, wanted)
    with_bodies = bool(wanted.payload or wanted.text)
    page = _page(tuple(values), wanted.reported, descending=wanted.descending, bodies=with_bodies)
    # SQLite has no limit without an offset: left to SQLAlchemy, that would be a value which `Quick` lacks.
    rows = page.mappings(connection, values | {"limit": wanted.limit, "offset": 0})
    last = rows[-1] if rows else None
    if wanted.text:
        sought = wanted.text.casefold()
        rows = [row for row in rows if _says(connection, row, sought)]
    told = [to_wire(connection, row, payload=wanted.payload) for row in rows]
    return told, to_wire(connection, last) if last else None


def _values(connection: Connection, wanted: Filter) -> dict[str, Any]:
    """What `_page` compares with, by the names it has there."""
    values: dict[str, Any] = {}
    if wanted.scenario is not None:
        values["scenario"] = wanted.scenario
        if wanted.after_sequence:
            values["after_sequence"] = wanted.after_sequence
    for name in _BY_NAME:
        if (value := getattr(wanted, name)) is not None:
            values[name] = masked_name(value) if name in ("run", "session") else value
    if wanted.after is not None:
        last = find(connection, wanted.after, wanted.scenario)
        if wanted.scenario is None:
            values |= {"moment": last["created_at"], "id": last["id"]}
        else:
            values["sequence"] = last["sequence"]
    return values


@cache
def _page(given: tuple[str, ...], reported: bool | None, *, descending: bool, bodies: bool) -> Quick:
    """A page of records: those that `given` is true of, in the order in which they are told."""
    query = _ALL if bodies else _TOLD

    def beyond(place: ColumnElement[Any], last: ColumnElement[Any]) -> ColumnElement[bool]:
        return place < last if descending else place > last

    for name in given:
        if name in ("sequence", "after_sequence"):
            query = query.where(beyond(records.c.sequence, bindparam(name)))
        elif name == "moment":
            place = tuple_(records.c.created_at, records.c.id)
            query = query.where(beyond(place, tuple_(bindparam("moment"), bindparam("id"))))
        elif name != "id":
            query = query.where(records.c[name] == bindparam(name))
    if reported is not None:
        named = exists().where(pairs.c.receipt == records.c.id)
        query = query.where(named if reported else ~named)
    places = [records.c.sequence] if "scenario" in given else [records.c.created_at, records.c.id]
    ordered = query.order_by(*(place.desc() if descending else place for place in places))
    return Quick(ordered.limit(bindparam("limit")).offset(bindparam("offset")))


def _says(connection: Connection, row: Stored, sought: str) -> bool:
    said = to_wire(connection, row, payload=True)["payload"]
    return any(sought in text.casefold() for text in _strings(said))


def _strings(value: Any) -> Iterator[str]:
    """Every text in it but what only names roles, kinds and ids."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in _NO_TEXT:
                yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
