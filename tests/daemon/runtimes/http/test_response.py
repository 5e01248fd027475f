"""The parsing of answers, without a network: however their bytes are cut, it is the same answer."""

import re
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.runtimes.http.errors import BadAnswer, BrokeOff, NotHttp
from daemon.runtimes.http.response import HIGH_WATER, Response


class Line:
    """Counts what an answer wants of its connection."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def pause_reading(self) -> None:
        self.said.append("pause")

    def resume_reading(self) -> None:
        self.said.append("resume")

    def abort(self) -> None:
        self.said.append("abort")


def at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of what has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise AssertionError("it waits")


def fed(*pieces: bytes, bodiless: bool = False) -> Response:
    answer = Response(Line(), bodiless=bodiless)
    for piece in pieces:
        answer.feed(piece)
    return answer


NAMES = st.text("abcdefghijklmnopqrstuvwxyzABC-", min_size=1, max_size=12).map(lambda name: f"x-{name}")
VALUES = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=20
)
INTERIM = st.sampled_from(
    [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"]
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, int, list[tuple[str, str]], bytes, str]:
    """Bytes of an answer, what they mean, and how its body is framed."""
    status = draw(st.sampled_from([200, 201, 302, 400, 404, 500, 529]))
    headers = draw(st.lists(st.tuples(NAMES, VALUES), max_size=6))
    chunks = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    body = b"".join(chunks)
    lines = [f"HTTP/1.1 {status} Said".encode()]
    lines += [f"{name}: {value}".encode("latin-1") for name, value in headers]
    meant = [(name.lower(), value) for name, value in headers]
    if framing == "length":
        lines.append(b"Content-Length: %d" % len(body))
        meant.append(("content-length", str(len(body))))
        payload = body
    elif framing == "chunked":
        lines.append(b"Transfer-Encoding: chunked")
        meant.append(("transfer-encoding", "chunked"))
        payload = b"".join(b"%X;ext=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        payload += b"0\r\n" + draw(st.sampled_from([b"", b"x-trailer: t\r\n"])) + b"\r\n"
    else:
        payload = body
    return draw(INTERIM) + b"\r\n".join([*lines, b"", payload]), status, meant, body, framing


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(answers(), st.lists(st.integers(0, 2**16), max_size=12))
def test_it_does_not_matter_how_its_bytes_are_cut(
    said: tuple[bytes, int, list[tuple[str, str]], bytes, str], places: list[int]
) -> None:
    data, status, headers, body, framing = said
    answer = fed(*cut(data, places))
    if framing == "close":
        assert not answer.over
        answer.ended(cleanly=True)
    assert (answer.status, answer.headers, answer.over) == (status, headers, True)
    assert answer.reusable == (framing != "close")
    assert at_once(answer.whole()) == body


@given(answers(), st.integers(0, 2**16), st.lists(st.integers(0, 2**16), max_size=3), st.booleans())
def test_what_ends_early_is_never_whole(
    said: tuple[bytes, int, list[tuple[str, str]], bytes, str], kept: int, places: list[int], cleanly: bool
) -> None:
    data, _, _, body, framing = said
    data = data[: kept % len(data)]
    answer = fed(*cut(data, places))
    answer.ended(cleanly=cleanly)
    if framing == "close" and cleanly and answer.status:
        assert body.startswith(at_once(answer.whole()))  # nothing tells
        return
    assert not answer.over
    got: list[bytes] = []
    with pytest.raises(BrokeOff):
        read_into(got, answer)
    assert body.startswith(b"".join(got))


def read_into(got: list[bytes], answer: Response) -> None:
    while True:
        got.append(at_once(answer.__anext__()))


@given(st.lists(st.binary(max_size=60) | answers().map(lambda said: said[0]), max_size=4))
def test_no_bytes_break_it(pieces: list[bytes]) -> None:
    answer = fed(*pieces)
    answer.ended(cleanly=True)
    assert answer.over or answer.error is not None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "Expected HTTP/"),
        (b"HTTP/2 200 OK\r\n\r\n", "Expected dot"),
        (b"HTTP/1.1 OK\r\n\r\n", "status code"),
        (b"\r\n" * 200_000, "no end"),
    ],
    ids=["ssh", "version", "no status", "nothing"],
)
def test_what_is_no_head_says_why(data: bytes, why: str) -> None:
    assert_refused(data, NotHttp, why)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n", "status is 101"),
        (b"HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n", "status is 99"),
        (b"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n", "status is 600"),
        (b"HTTP/1.1 2x0 Odd\r\ncontent-length: 0\r\n\r\n", "status code"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "Duplicate Content-Length"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n", "Duplicate Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\ncontent-length: 2\r\n\r\n", "Duplicate Content-Length"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000, "no end"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, "no end"),
    ],
    ids=[
        "upgrade",
        "status",
        "large status",
        "odd status",
        "two lengths",
        "one length twice",
        "with a blank",
        "list of lengths",
        "two framings",
        "long header",
        "many interims",
    ],
)
def test_a_head_that_breaks_the_rules_says_how(data: bytes, why: str) -> None:
    assert_refused(data, BadAnswer, why)


def assert_refused(data: bytes, kind: type[Exception], why: str) -> None:
    answer = fed(*(data[start : start + 65536] for start in range(0, len(data), 65536)))
    assert type(answer.error) is kind
    assert why in str(answer.error)


def test_a_status_that_is_none_is_no_answer() -> None:
    assert fed(b"HTTP/1.1 600 Odd\r\ncontent-length: 0\r\n\r\n").status == 0


def test_trailers_without_end_are_cut() -> None:
    answer = fed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nx: ", b"y" * 300_000)
    assert at_once(answer.__anext__()) == b"ab"
    with pytest.raises(BrokeOff):
        at_once(answer.__anext__())


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    answer = fed(b"HTTP/1.1 %d Said\r\ncontent-length: 5\r\n\r\n" % status)
    assert (answer.over, answer.reusable, at_once(answer.whole())) == (True, True, b"")


def test_the_answer_to_head_has_none() -> None:
    answer = fed(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b"after", bodiless=True)
    assert (answer.over, answer.reusable, at_once(answer.whole())) == (True, False, b"")


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nab",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nc",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab and more",
    ],
    ids=["close", "1.0", "another answer", "garbage"],
)
def test_after_these_the_connection_is_not_used_again(data: bytes) -> None:
    answer = fed(data)
    assert (answer.over, answer.reusable, at_once(answer.whole())) == (True, False, b"ab")


def test_repeated_and_odd_headers_are_kept() -> None:
    answer = fed(b"HTTP/1.1 200\nSet-Cookie: a\nSET-COOKIE:b  \r\nEmpty:\r\nFold: a\r\n b\r\nU: \xfc\r\n\r\n")
    expected = [("set-cookie", "a"), ("set-cookie", "b"), ("empty", ""), ("fold", "a b"), ("u", "\xfc")]
    assert answer.headers == expected


@given(st.lists(st.tuples(NAMES, st.binary(max_size=8)), max_size=4))
def test_no_header_has_a_control_character(headers: list[tuple[str, bytes]]) -> None:
    lines = [f"{name}: ".encode() + value for name, value in headers]
    answer = fed(b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"content-length: 0", b"", b""]))
    for _, value in answer.headers:
        assert not set(value) & {*map(chr, range(32)), "\x7f"} - {"\t"}


def test_what_has_a_control_character_is_left_out() -> None:
    lines = [b"a: a\x01b", b"b: \0", b"c: \x7f", b"d: a\tb\xa0", b"content-length: 0"]
    answer = fed(b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""]))
    assert (answer.headers, answer.over) == ([("d", "a\tb\xa0"), ("content-length", "0")], True)


TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]+")
VISIBLE = re.compile(r"([\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
ODD_NAMES = st.sampled_from([b"Content-Length", b"Transfer-Encoding", b"Connection", b"X-Odd", b""])
ODD_BLANKS = st.sampled_from([b"", b" ", b"  ", b"\t", b"\r\n ", b" x", b"\xe9", b"(", b"\0", b"\x0b"])
ODD_VALUES = st.sampled_from([b"5", b"chunked", b"close", b"a\xe9\x85\xa0", b"", b"a\r\n\tb ", b"\x01"])


@given(
    st.lists(st.tuples(ODD_NAMES, ODD_BLANKS, ODD_BLANKS, ODD_VALUES | st.binary(max_size=6)), max_size=4),
    st.sampled_from([b"OK", b"", b"\xff\xfe na\xefve", b"a\tb\0"]),
    st.lists(st.integers(0, 200), max_size=3),
)
def test_all_that_is_told_of_a_head_may_be_passed_on(
    headers: list[tuple[bytes, bytes, bytes, bytes]], reason: bytes, places: list[int]
) -> None:
    lines = [name + after + b":" + before + value for name, after, before, value in headers]
    answer = fed(*cut(b"\r\n".join([b"HTTP/1.1 200 " + reason, *lines, b"", b"hello"]), places))
    for name, value in answer.headers:
        assert TOKEN.fullmatch(name)
        assert VISIBLE.fullmatch(value)


@pytest.mark.parametrize("blank", [" ", "   "])
def test_blanks_before_the_colon_mean_nothing(blank: str) -> None:
    def said(name: str, value: str, body: str) -> Response:
        return fed(f"HTTP/1.1 200 OK\r\n{name}{blank}: {value}\r\n\r\n{body}".encode())

    answer = said("Content-Length", "5", "hello")
    assert (answer.headers, answer.over, answer.reusable) == ([("content-length", "5")], True, True)
    answer = said("Transfer-Encoding", "chunked", "1\r\na\r\n0\r\n\r\n")
    assert (answer.headers, answer.over, answer.reusable) == ([("transfer-encoding", "chunked")], True, True)
    answer = said("content-length: 0\r\nConnection", "close", "")
    assert (answer.headers[1], answer.over, answer.reusable) == (("connection", "close"), True, False)
    for answer in (said("Content-Length", "5", "hell"), said("Transfer-Encoding", "chunked", "1\r\na\r\n")):
        answer.ended(cleanly=True)
        assert isinstance(answer.error, BrokeOff)


def test_a_name_that_is_none_is_left_out() -> None:
    """The parser knows its beginning, but means another."""
    lines = [b"Content-Length x: 3", b"Connection x: close", b"content-length: 5", b"", b"hello"]
    answer = fed(b"\r\n".join([b"HTTP/1.1 200 OK", *lines]))
    assert (answer.headers, answer.over, answer.reusable) == ([("content-length", "5")], True, True)


@pytest.mark.parametrize(
    ("codings", "framed"),
    [
        (["gzip, Chunked"], True),
        (["gzip", "chunked"], True),
        (["chunked", "gzip"], False),
        (["chunked, gzip"], False),
        (["xchunked"], False),
        (["chunked,"], False),
    ],
)
def test_the_last_coding_says_where_a_body_ends(codings: list[str], framed: bool) -> None:
    lines = "".join(f"transfer-encoding: {coding}\r\n" for coding in codings)
    answer = fed(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode(), b"1\r\na\r\n")
    answer.ended(cleanly=True)
    assert answer.over is not framed
    assert at_once(answer.__anext__()) == (b"a" if framed else b"1\r\na\r\n")
    with pytest.raises(BrokeOff if framed else StopAsyncIteration):
        at_once(answer.__anext__())


def test_a_server_waits_for_a_slow_reader() -> None:
    line = Line()
    answer = Response(line)
    answer.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * HIGH_WATER)
    assert line.said == []
    answer.feed(b"x")
    answer.feed(b"x")
    assert line.said == ["pause"]
    assert len(at_once(answer.__anext__())) == HIGH_WATER + 2
    assert line.said == ["pause", "resume"]


def test_closing_breaks_off_what_is_not_over() -> None:
    line = Line()
    answer = Response(line)
    answer.close()
    answer.close()
    assert line.said == ["abort"]
