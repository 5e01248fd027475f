"""Retries: a client that lost an answer sends the same messages again, and only the last answer counts.

Equal requests that ran at the same time are no retries: who asks for several answers at once wants them all.

A turn is marked once, however often the same is asked after it, so that a request costs the same after
thousands of its like. Which one counts in the end is found from mark to mark (`counting`). That way stays
short: a turn that was itself counted before is marked with the first of those before it, and only the mark of
this first one is renewed.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from hashlib import blake2b
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, bindparam, func, or_, select, text, update

from daemon.records.draft import Draft
from daemon.store.quick import Quick
from daemon.store.schema import pairs, records
from daemon.wire.values import Json, dump
from reef.ids import now, rfc3339

HASH_BYTES = 16
NAMES_KEPT = 8192
_STORED_TO = timedelta(milliseconds=1)
"""How exact stored times are."""
_OPEN = ("pending", "eligible")
"""Verdicts that may teach yet."""
_VERDICTS_ON = Quick(select(pairs.c.report, pairs.c.state).where(pairs.c.receipt == bindparam("receipt")))
_MARK = Quick(
    update(records).where(records.c.id == bindparam("receipt")).values(superseded_by=bindparam("by"))
)
_FIRST_BEFORE = Quick(
    select(records.c.id)
    .where(
        *(records.c[name] == bindparam(name) for name in ("scenario", "message_hash")),
        records.c.superseded_by == bindparam("receipt"),
    )
    .order_by(records.c.created_at)
)
"""Of the turns that one counts for, the one that began first."""
_marks = (
    select(records.c.superseded_by.label("id"))
    .where(records.c.id == bindparam("receipt"))
    .cte("marks", recursive=True)
)
_marks = _marks.union(select(records.c.superseded_by).join(_marks, records.c.id == _marks.c.id))
_COUNTING = Quick(
    select(records.c.id).join(_marks, records.c.id == _marks.c.id).where(records.c.superseded_by.is_(None))
)


class MessageNames:
    """Names message lists by what they say, however they are written; remembers the names of single messages
    by the hashes of their bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def name(self, payload: Json, keys_of: Callable[[str], bytes | None]) -> bytes | None:
        """The name of a request's message list; None where there is none. `keys_of(key)` has the hashes of
        the bytes of the list's elements, one after another, where it has any.

        System text beside the list is left out: some clients vary it.
        """
        key = "messages" if payload.get("messages") else "input"
        if not (said := payload.get(key)):
            return None
        elements = said if isinstance(said, list) else [said]
        keys = keys_of(key) or b""
        if len(keys) == len(elements) * HASH_BYTES:
            known, places = self._known, range(0, len(keys), HASH_BYTES)
            named = [
                known.get(piece := keys[at : at + HASH_BYTES]) or self._remember(piece, element)
                for at, element in zip(places, elements, strict=True)
            ]
        else:
            named = [_hash(element) for element in elements]
        before = [payload.get(name) for name in ("previous_response_id", "conversation")]
        return blake2b(b"".join([*named, dump(before)]), digest_size=HASH_BYTES).digest()

    def _remember(self, piece: bytes, element: Any) -> bytes:
        known = self._known
        found = known[piece] = _hash(element)
        if len(known) > NAMES_KEPT:
            del known[next(iter(known))]  # the oldest: one that is still in use comes back as the newest
        return found


def _hash(element: Any) -> bytes:
    return blake2b(dump(element), digest_size=HASH_BYTES).digest()


def supersede(connection: Connection, draft: Draft, messages: bytes, sequence: int) -> list[tuple[str, str]]:
    """Mark the turns that were sent again: equal messages, in the same run, session or conversation.

    `draft` was just stored, at `sequence`. Where it is complete it counts instead of what it repeats: what
    was over when it began, and what came to no answer, however late that showed. Else it is marked itself,
    where a later one that counts is complete already. Reports on a marked turn teach nothing any more, unless
    they did already; returns (report, receipt) of each verdict that changed.
    """
    named = (
        ("run", draft.run),
        ("session", draft.session),
        ("conversation", None if draft.opens else draft.conversation),
    )
    shared = {name: value for name, value in named if value}
    if not shared:
        return []
    kin = {"scenario": draft.scenario, "message_hash": messages}
    asked = kin | shared | {"dialect": draft.dialect, "kind": "turn", "sequence": sequence}
    if draft.status != "complete":
        asked |= {"status": "complete", "moment": rfc3339(draft.created_at - _STORED_TO)}
        if (later := _complete_since(tuple(shared)).scalar(connection, asked)) is not None:
            _MARK.many(connection, [{"receipt": draft.id, "by": later}])
        return []
    began = draft.created_at + _STORED_TO
    asked["moment"] = rfc3339(began)
    earlier = [
        receipt
        for receipt, status, created_at, total_ms in _begun_by(tuple(shared)).rows(connection, asked)
        if status != "complete" or _end(created_at, total_ms) <= began
    ]
    marks = []
    for receipt in earlier:
        first = _FIRST_BEFORE.scalar(connection, kin | {"receipt": receipt})
        marks.append({"receipt": receipt, "by": first or draft.id})
        if first is not None:
            marks.append({"receipt": first, "by": draft.id})
    if not marks:
        return []
    _MARK.many(connection, marks)
    return _close_verdicts(connection, earlier, draft.id)


def counting(connection: Connection, receipt: str, mark: str | None) -> str | None:
    """The turn that counts instead of one whose `superseded_by` is `mark`; None where that is None."""
    if mark is None:
        return None
    found: str | None = _COUNTING.scalar(connection, {"receipt": receipt})
    return found or mark  # marks of before could lead in a circle


def _end(created_at: str, total_ms: float | None) -> datetime:
    return datetime.fromisoformat(created_at) + timedelta(milliseconds=total_ms or 0.0)


def _close_verdicts(connection: Connection, receipts: list[str], counts: str) -> list[tuple[str, str]]:
    """Reports on `receipts` teach nothing any more; returns (report, receipt) of what changed."""
    changed = [
        (report, receipt)
        for receipt in receipts
        for report, state in _VERDICTS_ON.rows(connection, {"receipt": receipt})
        if state in _OPEN
    ]
    close = update(pairs).values(
        state="ineligible",
        reason="superseded",
        message=f"the client sent it again; {counts} counts instead",
        updated_at=rfc3339(now()),
    )
    for report, receipt in changed:
        on_it = (pairs.c.report == report, pairs.c.receipt == receipt, pairs.c.state.in_(_OPEN))
        connection.execute(close.where(*on_it))
    return changed


@cache
def _begun_by(shared: tuple[str, ...]) -> Quick:
    """Those that had begun at a moment."""
    return Quick(_alike(shared).where(records.c.created_at <= bindparam("moment")))


@cache
def _complete_since(shared: tuple[str, ...]) -> Quick:
    """Those that began since a moment and are complete, the latest stored first."""
    since = (records.c.created_at >= bindparam("moment"), records.c.status == bindparam("status"))
    return Quick(_alike(shared).where(*since).order_by(_unindexed(records.c.sequence, "0").desc()))


def _alike(shared: tuple[str, ...]) -> "Select[Any]":
    """The turns stored before, with the same messages, that share one of these and that count."""
    equal = [records.c[name] == bindparam(name) for name in ("scenario", "message_hash", "dialect", "kind")]
    return select(records.c.id, records.c.status, records.c.created_at, records.c.total_ms).where(
        *equal,
        records.c.superseded_by.is_(None),
        _unindexed(records.c.sequence, "0") < bindparam("sequence"),
        or_(*(_unindexed(records.c[name], "''") == bindparam(name) for name in shared)),
    )


def _unindexed(column: Column[Any], never: str) -> ColumnElement[Any]:
    """Keeps SQLite from going through all of a run, session or scenario, instead of what has the same
    messages: it takes any other index for better."""
    return func.coalesce(column, text(never))
