"""JSON that others wrote, made fit for every writer of it."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.values import clean, load_object, plain
from reef.errors import Invalid

texts = st.text(st.characters(codec=None, categories=["L", "N", "Cs", "So"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


@given(values)
def test_what_is_plain_can_be_written(value: Any) -> None:
    made = plain(value)
    written = orjson.loads(orjson.dumps(made))
    assert plain(made) == made or written == orjson.loads(orjson.dumps(plain(made)))


@given(st.recursive(st.none() | st.integers(-(2**53), 2**53) | st.text(), st.lists))
def test_what_was_fit_before_stays_as_it_is(value: Any) -> None:
    assert plain(value) == value


@given(st.binary(max_size=40), st.binary(max_size=8))
def test_any_bytes_are_read_or_not(body: bytes, start: bytes) -> None:
    for said in (body, b'{"a":"' + body + b'"}', b"{\x00" + body, start + b'{"a":1}'):
        found = load_object(said)
        assert found is None or isinstance(found, dict)


def test_bytes_that_are_no_text() -> None:
    assert load_object(b'{"a":"\xff"}') == {"a": "\ufffd"}
    assert load_object(b'\xef\xbb\xbf{"a":NaN}') is not None
    assert load_object(b'{\x00\x00\x00"a":1}') is None


def test_what_changes() -> None:
    assert plain({"half \ud83d": ["\ud800", 2**70, 2**64 - 1]}) == {"half ?": ["?", str(2**70), 2**64 - 1]}
    assert clean("caf\u00e9 \ud83d") == "caf\u00e9 ?"


def test_what_is_nested_too_deeply_is_refused() -> None:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(Invalid, match="too deeply"):
        plain(value)
