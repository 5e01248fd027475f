"""Compressed bodies, whole or in pieces: never less than was sent, never more than the bound."""

import gzip
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.encoding import BROKEN, beginning, decode, decoder
from reef.errors import Invalid, TooLarge
from tests.daemon.wire.cutting import chunked

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}
MANY = ("gzip", "zstd")
"""Those of which several may follow each other."""
BODY = b'{"text": "one two three", "filler": "' + bytes(range(32, 127)) * 3 + b'"}'


@pytest.mark.parametrize("encoding", PACKERS)
@given(data=st.data(), parts=st.lists(st.binary(max_size=300), min_size=1, max_size=4))
def test_what_was_packed_comes_back(encoding: str, data: st.DataObject, parts: list[bytes]) -> None:
    parts = parts if encoding in MANY else parts[:1]
    packed = b"".join(PACKERS[encoding](part) for part in parts)
    plain = b"".join(parts)
    assert decode(packed, encoding.upper(), limit=10_000) == plain
    unpack = decoder(encoding)
    assert b"".join([unpack(piece) for piece in data.draw(chunked(packed))]) == plain


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("cut", [1, 5, 20])
def test_what_ends_too_early_is_refused(encoding: str, cut: int) -> None:
    packed = PACKERS[encoding](BODY)
    for body in (packed[:-cut], packed + packed[:-cut] if encoding in MANY else packed[:-cut]):
        with pytest.raises(Invalid, match=f"is not {encoding}"):
            decode(body, encoding, limit=10_000)


@pytest.mark.parametrize("encoding", PACKERS)
def test_nothing_is_nothing(encoding: str) -> None:
    assert decode(b"", encoding, limit=0) == b"" == decoder(encoding)(b"")
    assert decode(PACKERS[encoding](b""), encoding, limit=0) == b""


@pytest.mark.parametrize("encoding", MANY)
def test_many_small_parts(encoding: str) -> None:
    packed = PACKERS[encoding](b"abc") * 3000
    assert decode(packed, encoding, limit=10_000) == b"abc" * 3000
    with pytest.raises(Invalid, match=f"is not {encoding}"):
        decode(packed[:-1], encoding, limit=10_000)


@pytest.mark.parametrize("encoding", PACKERS)
def test_what_is_something_else_is_refused(encoding: str) -> None:
    with pytest.raises(Invalid, match=f"is not {encoding}") as refused:
        decode(BODY, encoding, limit=10_000)
    assert "content-encoding" in refused.value.hint
    with pytest.raises(BROKEN):
        decoder(encoding)(BODY)


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_bomb_is_not_unpacked(encoding: str) -> None:
    bomb = PACKERS[encoding](bytes(10_000_000))
    with pytest.raises(TooLarge):
        decode(bomb, encoding, limit=10_000)
    assert beginning(bomb, encoding, most=10_000) == bytes(10_000)
    assert len(decode(PACKERS[encoding](bytes(10_000)), encoding, limit=10_000)) == 10_000


def test_plain_bodies_and_unknown_encodings() -> None:
    assert decode(BODY, None, limit=1) == decode(BODY, " Identity", limit=1) == BODY
    for encoding in ("br", "gzip, gzip"):
        with pytest.raises(Invalid, match="not understood"):
            decode(BODY, encoding, limit=10_000)
        with pytest.raises(Invalid, match="not understood"):
            decoder(encoding)
