"""Retries: a client that lost an answer sends the same messages again, and only the last answer counts.

Equal requests that ran at the same time are no retries: who asks for several answers at once wants them all.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select, update

from daemon.records.draft import Draft
from daemon.store.quick import Quick
from daemon.store.schema import pairs, records
from daemon.wire.values import Json, dump
from reef.ids import now, rfc3339

HASH_BYTES = 16
NAMES_KEPT = 8192
_STORED_TO = timedelta(milliseconds=1)
"""How exact stored times are."""


class MessageNames:
    """Names message lists by what they say, however they are written; remembers the names of single messages
    by the hashes of their bytes."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, bytes] = OrderedDict()

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
            named = [
                self._remembered(keys[at * HASH_BYTES : (at + 1) * HASH_BYTES], element)
                for at, element in enumerate(elements)
            ]
        else:
            named = [_hash(element) for element in elements]
        before = [payload.get(name) for name in ("previous_response_id", "conversation")]
        return blake2b(b"".join([*named, dump(before)]), digest_size=HASH_BYTES).digest()

    def _remembered(self, key: bytes, element: Any) -> bytes:
        known = self._known
        if (found := known.get(key)) is not None:
            known.move_to_end(key)
            return found
        found = known[key] = _hash(element)
        if len(known) > NAMES_KEPT:
            known.popitem(last=False)
        return found


def _hash(element: Any) -> bytes:
    return blake2b(dump(element), digest_size=HASH_BYTES).digest()


def supersede(connection: Connection, draft: Draft, messages: bytes) -> list[tuple[str, str]]:
    """Mark the turns that were sent again: equal messages, in the same run, session or conversation.

    Where `draft` is complete it counts instead of what it repeats: what was over when it began, and what came
    to no answer, however late that showed. Else it is marked itself, where a later one is complete already.
    Reports on a marked turn teach nothing any more, unless they did already; returns (report, receipt) of
    each verdict that changed.
    """
    equal = _equal(connection, draft, messages)
    if draft.status != "complete":
        later = [turn.id for turn in equal if turn.complete and turn.began >= draft.created_at - _STORED_TO]
        if later:
            own = update(records).where(records.c.id == draft.id)
            connection.execute(own.values(superseded_by=later[-1]))
        return []
    began = draft.created_at + _STORED_TO
    earlier = [turn.id for turn in equal if (turn.ended if turn.complete else turn.began) <= began]
    if not earlier:
        return []
    connection.execute(update(records).where(records.c.id.in_(earlier)).values(superseded_by=draft.id))
    open_pairs = (pairs.c.receipt.in_(earlier), pairs.c.state.in_(("pending", "eligible")))
    changed = [
        (row.report, row.receipt)
        for row in connection.execute(select(pairs.c.report, pairs.c.receipt).where(*open_pairs))
    ]
    connection.execute(
        update(pairs)
        .where(*open_pairs)
        .values(
            state="ineligible",
            reason="superseded",
            message=f"the client sent it again; {draft.id} counts instead",
            updated_at=rfc3339(now()),
        )
    )
    return changed


@dataclass(frozen=True, slots=True)
class _Turn:
    id: str
    complete: bool
    began: datetime
    ended: datetime


def _equal(connection: Connection, draft: Draft, messages: bytes) -> list[_Turn]:
    """The stored turns with these messages that belong with `draft`, the latest stored last."""
    named = (
        ("run", draft.run),
        ("session", draft.session),
        ("conversation", None if draft.opens else draft.conversation),
    )
    shared = {name: value for name, value in named if value}
    if not shared:
        return []
    asked = {
        "scenario": draft.scenario,
        "message_hash": messages,
        "dialect": draft.dialect,
        "kind": "turn",
        "own_id": draft.id,
    }
    found = []
    for receipt, status, created_at, total_ms in _same_messages(tuple(shared)).rows(
        connection, asked | shared
    ):
        began = datetime.fromisoformat(created_at)
        found.append(
            _Turn(receipt, status == "complete", began, began + timedelta(milliseconds=total_ms or 0.0))
        )
    return found


@cache
def _same_messages(shared: tuple[str, ...]) -> Quick:
    """Other turns with the same messages that share one of these."""
    equal = [records.c[name] == bindparam(name) for name in ("scenario", "message_hash", "dialect", "kind")]
    return Quick(
        select(records.c.id, records.c.status, records.c.created_at, records.c.total_ms)
        .where(
            *equal,
            records.c.id != bindparam("own_id"),
            or_(*(records.c[name] == bindparam(name) for name in shared)),
        )
        .order_by(records.c.sequence)
    )
