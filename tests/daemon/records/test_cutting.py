"""Where a body is cut depends on its bytes alone, however much of it was taken over from another."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daemon.records.cutting import CUT_FROM_BYTES, MOST_PIECES, Cut, common_head, cut

LONG = "x" * CUT_FROM_BYTES
LISTS = ("messages", "input", "tools", "system")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
members = st.tuples(st.sampled_from([*LISTS, "model"]), values | st.lists(values, max_size=6))
"""Keys may come twice."""
styles = st.sampled_from([(", ", ": "), (",", ":"), (" ,\n ", " :\t")])
FRAGMENTS = [b"", b",", b" ", b"]", b"[", b"}", b"{", b'"', b"1", b".", b"e", b"-", b"null", b"\\", b"\xff"]
FRAGMENTS += [b'"messages":[', b',{"role":"user"}', b',"two"', b"\xc3\xa9", b"1.5e3", LONG.encode()]


def written(body: list[tuple[str, Any]], style: tuple[str, str], *, ascii_only: bool) -> bytes:
    """An object of these members, in their order."""
    between, colon = style

    def dump(value: Any) -> str:
        return json.dumps(value, separators=style, ensure_ascii=ascii_only)

    parts = [f"{dump(key)}{colon}{dump(value)}" for key, value in [("pad", LONG), *body]]
    return ("{" + between.join(parts) + "}").encode("utf-8", "surrogatepass")


bodies = st.builds(written, st.lists(members, max_size=5), styles, ascii_only=st.booleans())


def pieces(made: Cut) -> list[bytes]:
    return made.pieces(0, len(made.ends))


def check(body: bytes, like: bytes) -> None:
    """Cutting it is the same with and without help, and what is said to be shared is."""
    other, alone = cut(like)[0], cut(body)[0]
    helped, shared = cut(body, other)
    assert helped == alone
    assert b"".join(pieces(helped)) == body
    assert shared.head + shared.tail <= len(helped.ends)
    assert pieces(helped)[: shared.head] == pieces(other)[: shared.head]
    if shared.tail:
        assert pieces(helped)[-shared.tail :] == pieces(other)[-shared.tail :]


@given(bodies)
def test_the_pieces_are_the_body(body: bytes) -> None:
    made = cut(body)[0]
    assert b"".join(pieces(made)) == body
    said = json.loads(body)
    for key in LISTS:
        places = made.places(key)
        if isinstance(said.get(key), list):
            assert places is not None
            assert places[1] - places[0] == len(said[key])
            inside = b"".join(made.pieces(*places))
            assert json.loads(b"[" + inside + b"]") == said[key]


@given(bodies, bodies)
def test_any_other_body_changes_nothing(body: bytes, like: bytes) -> None:
    check(body, like)


@settings(max_examples=300)
@given(bodies, st.data())
def test_an_edited_body_is_cut_as_if_it_were_the_first(like: bytes, data: st.DataObject) -> None:
    """Bytes are put in, taken out or replaced anywhere: it may be JSON no more."""
    body = like
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(len(LONG), len(body)))
        end = data.draw(st.integers(start, min(start + 12, len(body))))
        body = body[:start] + data.draw(st.sampled_from(FRAGMENTS)) + body[end:]
    check(body, like)
    check(like, body)


@pytest.mark.parametrize(
    "after", ["1", "1.", "1.5", "1e", "1e5", "01", "1-", "1 ", "tru", "true1", '"', "[", ""]
)
@pytest.mark.parametrize("before", ["1", "12", "1.5", "true", '"a"', "[]"])
@pytest.mark.parametrize("end", ["]}", "", ",2]}"])
def test_a_value_that_goes_on_is_another(before: str, after: str, end: str) -> None:
    head = f'{{"pad":"{LONG}","messages":["one",'
    check(f"{head}{after}{end}".encode(), f"{head}{before}{end}".encode())
    check(f"{head}{before}{after}{end}".encode(), f"{head}{before}{end}".encode())


@given(st.binary(max_size=200))
@example(b"")
def test_what_is_no_json_is_kept_as_it_is(noise: bytes) -> None:
    for raw in (noise, b'{"messages":[{"a":1},' + LONG.encode() + noise, LONG.encode() + noise):
        assert b"".join(pieces(cut(raw)[0])) == raw


def test_a_body_of_very_many_elements_is_one_piece() -> None:
    most, more = (json.dumps({"input": [1] * (MOST_PIECES - fewer)}).encode() for fewer in (1, 0))
    assert len(cut(most)[0].ends) == MOST_PIECES + 1
    for like in (None, cut(most)[0]):
        made = cut(more, like)[0]
        assert pieces(made) == [more]
        assert made.places("input") is None


@settings(max_examples=30)
@given(st.integers(1, 5), st.sampled_from(LISTS), st.sampled_from(LISTS))
def test_a_longer_conversation_shares_its_beginning_and_what_follows(more: int, key: str, rest: str) -> None:
    said = [{"role": "user", "content": f"{number} {LONG}"} for number in range(more + 1)]
    tools = {} if rest == key else {rest: [{"name": "look"}, {"name": "read"}]}
    shorter, longer = (
        cut(json.dumps({"model": "m", key: said[:count], **tools, "stream": True}).encode())[0]
        for count in (1, more + 1)
    )
    again, shared = cut(longer.body, shorter)
    assert again == longer
    assert shared.head + shared.tail == len(shorter.ends)
    assert len(longer.ends) == len(shorter.ends) + more
    assert common_head(longer.body, shorter) == shared.head
