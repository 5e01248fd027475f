"""A body is cut where its lists are, read back byte for byte, and what two of them share is stored once."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from daemon.records.bodies import CUT_FROM_BYTES, Masking, cut, load_body, store_pieces
from daemon.records.query import find, to_wire
from daemon.store.schema import pieces
from tests.daemon.records.desk import Desk

LONG = "x" * CUT_FROM_BYTES
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
bodies = st.fixed_dictionaries(
    {"pad": st.just(LONG)},
    optional={key: values | st.lists(values) for key in ("messages", "input", "tools", "system", "model")},
)


@given(bodies, st.sampled_from([None, 0, 2]), st.booleans())
def test_the_pieces_are_the_body(body: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert b"".join(cut(raw)) == raw


@given(st.binary(max_size=200))
def test_what_is_no_json_is_kept_as_it_is(noise: bytes) -> None:
    for raw in (noise, b'{"messages":[{"a":1},' + LONG.encode() + noise, LONG.encode() + noise):
        assert b"".join(cut(raw)) == raw


@settings(max_examples=30)
@given(st.integers(1, 5), st.sampled_from(["messages", "input", "tools", "system"]))
def test_a_longer_conversation_begins_with_the_same_pieces(more: int, key: str) -> None:
    said = [{"role": "user", "content": f"{number} {LONG}"} for number in range(more + 1)]
    shorter, longer = (
        cut(json.dumps({"model": "m", key: said[:count], "stream": True}).encode()) for count in (1, more + 1)
    )
    assert shorter[:-1] == longer[: len(shorter) - 1]
    assert shorter[-1] == longer[-1]
    assert len(longer) == len(shorter) + more


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
    parts = [Masking(scrub=True).masked(part) for part in cut(raw)]
    desk.store.writer.submit(
        lambda connection: store_pieces(connection, {key: data for key, data, _ in parts})
    ).result(10)
    hashes = b"".join(key for key, _, _ in parts)
    assert desk.store.read_now(lambda connection: load_body(connection, hashes)) == raw
