"""A body is read back byte for byte, and what two of them share is stored once."""

import json
from itertools import pairwise

import pytest
from sqlalchemy import func, select

from daemon.records.bodies import Masking, load_body, store_pieces
from daemon.records.cutting import CUT_FROM_BYTES, cut
from daemon.records.listing import Filter, listing
from daemon.records.query import find, to_wire
from daemon.scrub import masked_name
from daemon.store.schema import pieces, records, reports
from tests.daemon.records.desk import Desk

LONG = "x" * CUT_FROM_BYTES


def test_a_session_is_stored_once_and_read_back_exactly(desk: Desk) -> None:
    def stored() -> int:
        return desk.store.read_now(
            lambda connection: connection.execute(select(func.count()).select_from(pieces)).scalar_one()
        )

    said: list[dict[str, str]] = []
    drafts, counts = [], []
    for turn in range(5):
        said.append({"role": "user", "content": f"{turn} {LONG}"})
        draft = desk.draft(request=json.dumps({"model": "m", "messages": said}).encode())
        desk.run(desk.book.append(draft))
        drafts.append(draft)
        counts.append(stored())
    for draft in drafts:
        wire = desk.store.read_now(lambda c, d=draft: to_wire(c, find(c, d.id), payload=True))
        assert wire["payload"]["messages"] == json.loads(draft.request)["messages"]
    assert [after - before for before, after in pairwise(counts)] == [2] * 4


@pytest.mark.parametrize("where", ["messages", "system"])
def test_a_credential_is_masked_in_a_piece_that_comes_again(desk: Desk, where: str) -> None:
    secret = "sk-proj-abcDEF0123456789abcdef"
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        where: [{"content": f"{LONG} {secret}"}],
    }
    for _ in range(2):
        draft = desk.draft(request=json.dumps(body).encode())
        desk.run(desk.book.append(draft))
        wire = desk.store.read_now(lambda c, d=draft: to_wire(c, find(c, d.id), payload=True))
        assert secret not in json.dumps(wire)
        assert wire["metadata"]["scrubbed"] == 1


def test_where_nothing_is_to_be_masked_the_bytes_stay() -> None:
    masking = Masking(scrub=False)
    piece = b"sk-proj-abcDEF0123456789abcdef"
    assert masking.masked(piece)[1:] == (piece, 0)


def test_many_pieces_are_read_back(desk: Desk) -> None:
    raw = json.dumps({"messages": [f"{number} {LONG}" for number in range(1200)]}).encode()
    whole, _ = cut(raw)
    parts = [Masking(scrub=True).masked(part) for part in whole.pieces(0, len(whole.ends))]
    desk.store.writer.submit(
        lambda connection: store_pieces(connection, {key: data for key, data, _ in parts})
    ).result(10)
    hashes = b"".join(key for key, _, _ in parts)
    assert desk.store.read_now(lambda connection: load_body(connection, hashes)) == raw


def test_a_credential_as_a_name_is_not_stored_and_still_finds_its_records(desk: Desk) -> None:
    secret = "sk-proj-" + "a1b2" * 6
    echo = json.dumps({"model": secret, "choices": [{"message": {"content": "hi"}}]}).encode()
    first = desk.record("a", run=masked_name(secret), model=secret, response=echo)
    desk.record("c", model=None, response=echo)
    desk.record("b", run=masked_name(secret + "2"))
    found, _ = desk.store.read_now(lambda c: listing(c, Filter(run=secret)))
    assert [row["agent_record_id"] for row in found] == [first]
    assert desk.pairs(desk.report(f"run:{secret}", score=1)).keys() == {first}
    for table in (records, reports):
        assert secret not in str(desk.store.read_now(lambda c, t=table: list(c.execute(select(t)))))
