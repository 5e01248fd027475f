"""Retries: a client that lost an answer sends the same messages again, and only the last answer counts.

Equal requests that ran at the same time are no retries: who asks for several answers at once wants them all.
"""

from datetime import datetime, timedelta
from hashlib import blake2b

from sqlalchemy import Connection, or_, select, update

from daemon.records.draft import Draft
from daemon.store.schema import pairs, records
from daemon.wire.values import Json, dump
from reef.ids import now, rfc3339

HASH_BYTES = 16
_STORED_TO = timedelta(milliseconds=1)
"""How exact stored times are."""


def message_hash(payload: Json) -> bytes | None:
    """Names the message list of a request; None where there is none.

    System text beside the list is left out: some clients vary it.
    """
    said = payload.get("messages") or payload.get("input")
    if not said:
        return None
    before = [payload.get(key) for key in ("previous_response_id", "conversation")]
    return blake2b(dump([said, *before]), digest_size=HASH_BYTES).digest()


def supersede(connection: Connection, draft: Draft, messages: bytes) -> list[tuple[str, str]]:
    """Mark what it repeats: turns with these messages, of its run, session or conversation, that were over.

    `draft`, a turn that is complete, counts instead. Reports on them teach nothing any more, unless they did
    already; returns (report, receipt) of each verdict that changed.
    """
    shared = [
        records.c[name] == value
        for name, value in (
            ("run", draft.run),
            ("session", draft.session),
            ("conversation", None if draft.opens else draft.conversation),
        )
        if value
    ]
    if not shared:
        return []
    began = draft.created_at + _STORED_TO
    query = select(records.c.id, records.c.created_at, records.c.total_ms).where(
        records.c.scenario == draft.scenario,
        records.c.message_hash == messages,
        records.c.dialect == draft.dialect,
        records.c.kind == "turn",
        records.c.id != draft.id,
        or_(*shared),
    )
    earlier = [row.id for row in connection.execute(query) if _ended(row.created_at, row.total_ms) <= began]
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


def _ended(created_at: str, total_ms: float | None) -> datetime:
    return datetime.fromisoformat(created_at) + timedelta(milliseconds=total_ms or 0.0)
