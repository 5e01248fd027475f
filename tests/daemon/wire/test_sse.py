from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from daemon.wire import sse
from daemon.wire.sse import EventSplitter
from tests.daemon.wire.cutting import chunked

LINES = st.sampled_from(
    [b"data: x", b"data:y", b"event: e", b": comment", b"id: 1", b"data", b"", b"data: {}\r", b"\r"]
)
STREAMS = st.one_of(
    st.binary(max_size=80),
    st.lists(LINES, max_size=20).flatmap(
        lambda lines: st.sampled_from(
            [b"\n".join(lines), b"\r\n".join(lines) + b"\r\n\r\n", b"\r".join(lines) + b"\r\r"]
        )
    ),
)


@given(STREAMS.flatmap(chunked))
def test_nothing_is_lost_and_chunks_do_not_matter(chunks: list[bytes]) -> None:
    splitter = EventSplitter()
    events = [event for chunk in chunks for event in splitter.feed(chunk)]
    whole = b"".join(chunks)
    assert b"".join(events) + splitter.rest == whole
    assert (events, splitter.rest) == sse.split(whole)
    assert all(event.splitlines()[-1:] == [b""] and event[-1:] in b"\r\n" for event in events)


def test_lines_may_end_with_a_cr_alone() -> None:
    body = b'event: e\rdata: {"a":1}\rdata: {}\r\r: hi\r\rdata: [DONE]\r\r'
    events, rest = sse.split(body)
    assert [sse.data(event) for event in events] == [b'{"a":1}\n{}', b""]
    assert sse.data(rest) == b"[DONE]", "its end may be half of a CRLF"
    assert sse.name(events[0]) == b"e"
    assert sse.splice(b'event: e\rdata: {"a":1}\r\r', b'"r":1') == b'event: e\rdata: {"a":1,"r":1}\r\r'


def test_what_is_no_event() -> None:
    assert all(map(sse.is_event, (b"\n\n", b": hi\n\n", b"event: ping\n\n", b"retry: 5\n\n", b"data\n\n")))
    assert not any(map(sse.is_event, (b"<html>502</html>\n\n", b'{"error": {}}\n\n', b"dat\n\n")))


def test_reads_the_fields_of_an_event() -> None:
    event = b": hi\r\nevent: ping\r\ndata:one\r\ndata: two\r\nid: 7\r\n\r\n"
    assert sse.name(event) == b"ping"
    assert sse.data(event) == b"one\ntwo"
    assert (sse.name(b": only a comment\n\n"), sse.data(b": only a comment\n\n")) == (b"", b"")


def test_splices_into_the_last_line_of_data() -> None:
    assert sse.splice(b'data: {"a":{}}\nid: {}\n\n', b'"r":1') == b'data: {"a":{},"r":1}\nid: {}\n\n'
    assert sse.splice(b'data: {"a":1,\r\ndata: "b":2 }\r\n\r\n', b'"r":1') == (
        b'data: {"a":1,\r\ndata: "b":2 ,"r":1}\r\n\r\n'
    )
    for untouched in (b": comment }\n\n", b"data: [DONE]\n\n", b""):
        assert sse.splice(untouched, b'"r":1') == untouched


def test_a_large_event_in_small_pieces_costs_linear_time() -> None:
    def cost(size: int) -> float:
        splitter = EventSplitter()
        chunk = b"x" * 1024
        began = process_time()
        for _ in range(size // 1024):
            splitter.feed(chunk)
        assert len(splitter.feed(b"\n\n")) == 1
        return process_time() - began

    cost(2**20)
    assert min(cost(2**23) for _ in range(5)) < 40 * max(min(cost(2**20) for _ in range(5)), 0.002)
