"""Retries: a client that lost an answer sends the same messages again, and only the last answer counts."""

from hashlib import blake2b

from sqlalchemy import Connection, or_, select, update

from daemon.records.draft import Draft
from daemon.store.schema import pairs, records
from daemon.wire.values import Json, dump
from reef.ids import now, rfc3339

HASH_BYTES = 16


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
    """Mark earlier turns with these messages, of the same run, session or conversation.

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
    query = select(records.c.id).where(
        records.c.scenario == draft.scenario,
        records.c.message_hash == messages,
        records.c.dialect == draft.dialect,
        records.c.kind == "turn",
        records.c.id != draft.id,
        or_(*shared),
    )
    earlier = list(connection.execute(query).scalars())
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
