"""Streams that break, clients that leave, stores that fail: what is said, and what is recorded."""

import gzip
import json
import time

import httpx
import pytest

from daemon.runtimes.upstream import HttpUpstream
from daemon.serving.turn import Turn
from daemon.settings.model import UpstreamSection
from daemon.wire.tail import StreamTail
from reef.errors import Unavailable
from reef.runtime import DIALECTS, Dialect, ProviderRequest, ProviderResponse
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.runtimes.test_upstream import talker
from tests.daemon.serving.house import House, house
from tests.stub_dialects import Reply, buffered, sse, streamed
from tests.stub_provider import Fault, Raw, StubProvider


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_a_stream_without_its_terminal_event_is_complete_after_a_finish_reason(
    dialect: Dialect, client: httpx.Client, home: House, stub: StubProvider
) -> None:
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    chunk = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}
    body = sse(chunk) if dialect == "chat" else sse(stop, "message_delta")
    stub.answer = lambda asked: Raw((body,), "text/event-stream")
    answer = client.post(PATHS[dialect], json=body_of(dialect, stream=True))
    assert answer.content == body
    assert home.records.drafts[0].status == "complete"


def test_what_follows_the_terminal_event_goes_through(
    client: httpx.Client, home: House, stub: StubProvider
) -> None:
    stub.event_delay_s = 0.05
    said = sse({"choices": [{"delta": {"content": "x"}}]})
    stub.answer = lambda asked: Raw((said, b"data: [DONE]\n\n", b": bye\n\n"), "text/event-stream")
    answer = client.post("/v1/chat/completions", json=body_of("chat", stream=True))
    assert answer.content.endswith(b"data: [DONE]\n\n: bye\n\n")


def test_bytes_go_out_as_they_arrive(client: httpx.Client, stub: StubProvider) -> None:
    stub.event_delay_s = 0.2
    with client.stream("POST", "/v1/messages", json=body_of("messages", stream=True)) as answer:
        times = [time.monotonic() for _ in answer.iter_raw()]
    assert times[-1] - times[0] > 0.2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_store_that_fails_lets_nothing_out(dialect: Dialect, client: httpx.Client, home: House) -> None:
    home.records.trouble = Unavailable("the disk is full", hint="make room", retry_after_s=9)
    answer = client.post(PATHS[dialect], json=body_of(dialect))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "9")
    assert "the disk is full (hint: make room)" in answer.json()["error"]["message"]
    assert "x-reef-agent-record-id" not in answer.headers
    streamed = client.post(PATHS[dialect], json=body_of(dialect, stream=True)).content
    assert b"503 overloaded: the disk is full" in streamed
    for word in (b"[DONE]", b'"message_stop"', b'"response.completed"', b"agent_record_id"):
        assert word not in streamed
    assert not home.seen


def test_a_store_that_fails_may_be_overlooked(stub: StubProvider) -> None:
    with house(stub.url, on_record_failure="serve") as lenient, httpx.Client(base_url=lenient.url) as client:
        lenient.records.trouble = Unavailable("the disk is full")
        answer = client.post("/v1/messages", json=body_of("messages"))
        assert (answer.status_code, "x-reef-agent-record-id" in answer.headers) == (200, False)
        streamed = client.post("/v1/messages", json=body_of("messages", stream=True)).content
        assert b'{"type": "message_stop"}' in streamed
        assert b"agent_record_id" not in streamed


@pytest.mark.parametrize("stream", [False, True])
def test_nobody_is_asked_for_what_cannot_be_stored(
    client: httpx.Client, home: House, stub: StubProvider, stream: bool
) -> None:
    home.records.failed = Unavailable("the disk is full", hint="make room", retry_after_s=3)
    for dialect in DIALECTS:
        answer = client.post(PATHS[dialect], json=body_of(dialect, stream=stream))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
        assert "the disk is full (hint: make room)" in answer.json()["error"]["message"]
    assert client.post("/v1/messages/count_tokens", json=body_of("messages")).status_code == 503
    assert not stub.asked
    home.records.failed = None
    assert client.post("/v1/messages", json=body_of("messages")).status_code == 200


def test_no_receipt_of_a_record_that_will_not_be_goes_out(stub: StubProvider) -> None:
    with house(stub.url, on_record_failure="serve") as lenient, httpx.Client(base_url=lenient.url) as client:
        lenient.records.failed = lenient.records.trouble = Unavailable("the disk is full")
        for dialect in DIALECTS:
            answer = client.post(PATHS[dialect], json=body_of(dialect, stream=True))
            assert answer.status_code == 200
            assert not {"x-reef-agent-record-id", "request-id", "x-request-id"} & set(answer.headers)
            assert answer.headers["x-reef-release-id"] == "r1"
        lenient.records.trouble = None  # there is room again, and nobody has shown it yet
        answer = client.post("/v1/messages", json=body_of("messages", stream=True))
        assert b"agent_record_id" in answer.content
        assert "x-reef-agent-record-id" not in answer.headers


ODD = b"x-odd: a\x01b\r\nx-request-id: a\0b\r\nx-del: \x7f\r\nx-even: a\tb\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_header_that_no_server_may_send_is_left_out(dialect: Dialect, stream: bool) -> None:
    """The server under the daemon would drop the client's connection because of it."""
    said = (dialect, Reply("well"), "m", 1, "hi")
    kind = b"text/event-stream" if stream else b"application/json"
    whole = b"".join(streamed(*said)) if stream else json.dumps(buffered(*said)).encode()
    with (
        talker(b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\n" + ODD + whole) as url,
        house(url) as odd,
    ):
        answer = httpx.post(odd.url + PATHS[dialect], json=body_of(dialect, stream=stream))
        assert (answer.status_code, "well" in answer.text) == (200, True)
        assert answer.headers["x-even"] == "a\tb"
        assert not {"x-odd", "x-del"} & set(answer.headers)
        assert answer.headers["x-request-id"] == answer.headers["x-reef-agent-record-id"]  # Reef's own
        assert odd.records.wait()[0].status == "complete"


def test_a_status_that_no_server_may_send_is_an_error() -> None:
    with talker(b"HTTP/1.1 999 No\r\ncontent-length: 2\r\n\r\n{}") as url, house(url) as odd:
        answer = httpx.post(odd.url + PATHS["chat"], json=body_of("chat"))
        assert (answer.status_code, "its status is 999" in answer.text) == (502, True)
        assert odd.records.wait()[0].status == "failed"


def test_a_dialect_to_which_no_bridge_leads_is_501(stub: StubProvider) -> None:
    mute = UpstreamSection(name="main", base_url=stub.url, api=())
    with house([mute]) as narrow:
        answer = httpx.post(f"{narrow.url}/v1/messages", json=body_of("messages"))
        assert answer.status_code == 501
        assert answer.json()["type"] == "error"
        assert "there is: `main`" in answer.json()["error"]["message"]
        assert not narrow.records.drafts


def test_a_runtime_that_loads_is_503_and_no_record(
    stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def loading(self: HttpUpstream, request: ProviderRequest) -> ProviderResponse:
        raise Unavailable("the model is loading", retry_after_s=4)

    monkeypatch.setattr(HttpUpstream, "send", loading)
    with house(stub.url) as early:
        answer = httpx.post(f"{early.url}/v1/responses", json=body_of("responses", stream=True))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "4")
        assert not early.records.drafts


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_bug_in_the_middle_of_a_stream_leaves_a_record_and_tells_the_client(
    dialect: Dialect, client: httpx.Client, home: House, stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receipt went out, so a record has to follow."""
    take = Turn.take

    def breaks(self: Turn, chunk: bytes) -> None:
        take(self, chunk)
        if len(self.arrived) > 1:
            raise LookupError("boom")

    monkeypatch.setattr(Turn, "take", breaks)
    stub.event_delay_s = 0.02
    answer = client.post(PATHS[dialect], json=body_of(dialect, stream=True))
    (draft,) = home.records.wait()
    assert draft.id == answer.headers["x-reef-agent-record-id"]
    assert (draft.status, "LookupError" in (draft.error_message or "")) == ("failed", True)
    assert "500 internal: the daemon failed" in answer.text
    assert draft.id not in home.records.running


@pytest.mark.parametrize("stream", [False, True])
def test_what_failed_is_in_the_log_without_any_key(
    client: httpx.Client, home: House, stub: StubProvider, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    key = "sk-proj-abcDEF0123456789abcdef"
    stub.answer = lambda asked: Fault(401, f"Incorrect API key provided: {key}\n, try another")
    client.post("/v1/chat/completions", json=body_of("chat", stream=stream))
    (draft,) = home.records.wait()
    (line,) = [each.getMessage() for each in caplog.records if draft.id in each.getMessage()]
    assert "401" in line
    assert "Incorrect API key provided: [masked by reef] , try another" in line
    assert key not in caplog.text


def test_a_bug_after_the_record_cuts_the_answer_off(
    client: httpx.Client, home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: StreamTail, receipt: str) -> bytes:
        raise KeyError(receipt)

    with monkeypatch.context() as patched:
        patched.setattr(StreamTail, "signed", fail)
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            client.post("/v1/chat/completions", json=body_of("chat", stream=True))
    assert [draft.status for draft in home.records.drafts] == ["complete"]
    assert client.post("/v1/chat/completions", json=body_of("chat", stream=True)).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_without_a_word_is_told_in_the_providers_shape(
    home: House, stub: StubProvider, dialect: Dialect, stream: bool
) -> None:
    stub.answer = lambda asked: Raw((b"\n",), "text/html", status=404)
    answer = httpx.post(home.url + PATHS[dialect], json=body_of(dialect, stream=stream))
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert "upstream `stub` answered 404" in answer.json()["error"]["message"]
    assert (answer.json().get("type") == "error") == (dialect == "messages")
    (draft,) = home.records.drafts
    assert (draft.status, draft.http_status, draft.response) == ("failed", 404, b"\n")


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_never_ends_is_ended(
    client: httpx.Client, home: House, stub: StubProvider, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr("daemon.serving.turn.ANSWER_LIMIT", 2**20)
    said = sse({"choices": [{"delta": {"content": "x" * 2**16}}]})
    kind = "text/event-stream" if stream else "application/json"
    stub.answer = lambda asked: Raw((said,) * 40, kind)
    answer = client.post("/v1/chat/completions", json=body_of("chat", stream=stream))
    assert answer.status_code == (200 if stream else 502)
    assert "longer than" in answer.text[-300:]
    (draft,) = home.records.wait()
    assert (draft.status, len(draft.response) <= 2**20) == ("failed", True)


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("https://me:secret@far.example:8443/v2/chat?key=secret#x", "https://far.example:8443/v2/chat"),
        ("/elsewhere?token=secret", "/elsewhere"),
        ("//far.example/x", "//far.example/x"),
    ],
)
def test_a_redirect_says_where_it_leads(
    client: httpx.Client, home: House, stub: StubProvider, location: str, told: str
) -> None:
    stub.answer = lambda asked: Raw((b"",), "text/html", {"location": location}, status=302)
    answer = client.post("/v1/messages", json=body_of("messages"))
    message = answer.json()["error"]["message"]
    assert answer.status_code == 502
    assert f"answered 302: it redirects to {told} (hint: check base_url" in message
    assert "secret" not in message + (home.records.drafts[0].error_message or "")


def test_an_upstream_that_closes_without_a_word() -> None:
    with talker(b"") as url, house(url) as silent:
        answer = httpx.post(f"{silent.url}/v1/messages", json=body_of("messages"))
    assert answer.status_code == 502
    assert "closed the connection without an answer" in answer.json()["error"]["message"]


OOM = {"error": {"message": "CUDA OOM", "code": 500}}
GONE = {"error": {"message": "gone"}}
BESIDE = {
    "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
    "error": {"message": "gone"},
}


@pytest.mark.parametrize(
    ("events", "told"),
    [((OOM,), "CUDA OOM"), ((BESIDE,), "gone"), (({"error": "no credits"},), "no credits")],
)
def test_the_words_of_an_error_event_are_kept_and_what_follows_it_passes(
    client: httpx.Client, home: House, stub: StubProvider, events: tuple[dict[str, object], ...], told: str
) -> None:
    said = (*map(sse, events), b"data: [DONE]\n\n")
    stub.answer = lambda asked: Raw(said, "text/event-stream")
    answer = client.post("/v1/chat/completions", json=body_of("chat", stream=True))
    assert answer.content == b"".join(said)
    (draft,) = home.records.wait()
    assert (draft.status, told in (draft.error_message or "")) == ("failed", True)


@pytest.mark.parametrize(
    "chunks", [(b"da", b"ta: "), (b"\n", b"data: "), (b"\xef\xbb\xbfdata", b": "), (b": hi\n\ndata: ",)]
)
def test_events_of_another_type_are_known_however_they_are_cut(
    client: httpx.Client, home: House, stub: StubProvider, chunks: tuple[bytes, ...]
) -> None:
    stub.event_delay_s = 0.02
    rest = b'{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n', b"data: [DONE]\n\n"
    stub.answer = lambda asked: Raw((*chunks, *rest), "text/plain")
    answer = client.post("/v1/chat/completions", json=body_of("chat", stream=True))
    assert answer.content.startswith(b"".join((*chunks, rest[0])))
    assert home.records.wait()[0].status == "complete"


def test_a_short_text_is_no_stream(client: httpx.Client, stub: StubProvider) -> None:
    stub.answer = lambda asked: Raw((b"no",), "text/plain")
    assert client.post("/v1/chat/completions", json=body_of("chat", stream=True)).status_code == 502


def test_a_responses_stream_may_end_with_an_error_as_chat_says_it(
    client: httpx.Client, home: House, stub: StubProvider
) -> None:
    stub.answer = lambda asked: Raw((sse(GONE),), "text/event-stream")
    assert client.post("/v1/responses", json=body_of("responses", stream=True)).content == sse(GONE)
    (draft,) = home.records.wait()
    assert (draft.status, draft.error_message) == (
        "failed",
        "the upstream ended the stream with an error: gone",
    )


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
def test_an_answer_that_unpacks_to_too_much_is_the_upstreams_fault(
    client: httpx.Client, home: House, stub: StubProvider, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for room in ("exchange", "reading"):
        monkeypatch.setattr(f"daemon.serving.{room}.ANSWER_LIMIT", 2**16)
    packed = gzip.compress(b"{" + b" " * 2**17 + b"}")
    stub.answer = lambda asked: Raw((packed,), "application/json", {"content-encoding": "gzip"})
    answer = client.post(path, json=body_of("chat"))
    message = answer.json()["error"]["message"]
    assert (answer.status_code, "has more than 65536 bytes" in message) == (502, True)
    assert "max_body_mb" not in message
    assert [draft.status for draft in home.records.drafts] == ["failed"] * ("chat" in path)
