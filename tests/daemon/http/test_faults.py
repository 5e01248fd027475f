"""Streams that break, clients that leave, stores that fail: what is said, and what is recorded."""

import socket
import time

import httpx
import pytest

from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import UpstreamSection
from daemon.wire.codec import codec_for
from reef.errors import Unavailable
from reef.runtime import DIALECTS, Dialect, ProviderRequest, ProviderResponse
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import House, house
from tests.stub_dialects import sse
from tests.stub_provider import Fault, Raw, StubProvider


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("clean", [False, True], ids=["cut", "ends"])
def test_a_broken_stream_ends_with_the_dialects_error(
    dialect: Dialect, clean: bool, client: httpx.Client, home: House, stub: StubProvider
) -> None:
    stub.answer = lambda asked: Fault(after=4, clean=clean)
    answer = client.post(PATHS[dialect], json=body_of(dialect, stream=True))
    (draft,) = home.records.drafts
    assert (draft.status, draft.error_type) == ("failed", "upstream")
    assert draft.response
    assert answer.content.startswith(draft.response)
    last = answer.content.removeprefix(draft.response)
    assert codec_for(dialect).mark(last).name == "ERROR"
    assert b"502 upstream overloaded" in last
    assert b"[DONE]" not in answer.content


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


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_upstreams_own_error_event_goes_through_as_it_is(
    dialect: Dialect, client: httpx.Client, home: House, stub: StubProvider
) -> None:
    event = codec_for(dialect).error_event("overloaded")
    stub.answer = lambda asked: Fault(after=2, event=event)
    answer = client.post(PATHS[dialect], json=body_of(dialect, stream=True))
    (draft,) = home.records.drafts
    assert answer.content == draft.response
    assert answer.content.endswith(event)
    assert draft.status == "failed"


def test_a_stream_answered_with_plain_json_is_an_ordinary_answer(
    client: httpx.Client, home: House, stub: StubProvider
) -> None:
    stub.answer = lambda asked: Raw((b'{"choices', b'":[]}'))
    answer = client.post("/v1/chat/completions", json=body_of("chat", stream=True))
    assert answer.json() == {"choices": []}
    assert (home.records.drafts[0].stream, home.records.drafts[0].status) == (False, "complete")


def test_what_follows_the_terminal_event_goes_through(
    client: httpx.Client, home: House, stub: StubProvider
) -> None:
    stub.event_delay_s = 0.05
    stub.answer = lambda asked: Raw((b"data: [DONE]\n\n", b": bye\n\n"), "text/event-stream")
    answer = client.post("/v1/chat/completions", json=body_of("chat", stream=True))
    assert answer.content.endswith(b"data: [DONE]\n\n: bye\n\n")


def test_bytes_go_out_as_they_arrive(client: httpx.Client, stub: StubProvider) -> None:
    stub.event_delay_s = 0.05
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


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_upstream_that_is_not_there(dialect: Dialect) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with house(f"http://127.0.0.1:{taken.getsockname()[1]}") as lonely:
            answer = httpx.post(lonely.url + PATHS[dialect], json=body_of(dialect))
            assert answer.status_code == 502
            assert "`stub`" in answer.json()["error"]["message"]
            assert lonely.records.drafts[0].status == "failed"
            assert answer.headers["x-reef-agent-record-id"] == lonely.records.drafts[0].id


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
