"""The provider routes end to end: a real client, the real app on a port, a provider that behaves."""

import gzip
import json

import httpx
import pytest
import zstandard

from daemon.wire import sse
from daemon.wire.codec import codec_for
from daemon.wire.prefix import Prefix
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import House, house
from tests.e2e.running import wait_for
from tests.stub_provider import Raw, StubProvider


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_buffered_exchange(dialect: Dialect, client: httpx.Client, home: House, stub: StubProvider) -> None:
    sent = json.dumps(body_of(dialect, "é"), indent=1).encode()
    secrets = {"authorization": "Bearer t", "x-api-key": "k", "cookie": "c=1", "x-reef-token": "t"}
    headers = {"x-reef-scenario": "city", "x-reef-tag-Client": "test", "x-custom": "kept", **secrets}
    answer = client.post(PATHS[dialect] + "?beta=true", content=sent, headers=headers)
    assert answer.status_code == 200
    receipt = answer.headers["x-reef-agent-record-id"]
    assert answer.headers["x-reef-release-id"] == "r1"
    assert answer.headers["request-id"] == answer.headers["x-request-id"] == receipt
    (asked,) = stub.asked
    assert asked.body == sent
    assert asked.path == PATHS[dialect] + "?beta=true"
    assert asked.headers["x-custom"] == "kept"
    assert asked.headers["accept-encoding"] == "identity"
    assert not set(secrets) & set(asked.headers)
    assert not [name for name in asked.headers if name.startswith("x-reef-")]
    (draft,) = home.records.drafts
    assert (draft.id, draft.scenario, draft.status, draft.http_status) == (receipt, "city", "complete", 200)
    assert (draft.request, draft.forwarded, draft.response) == (sent, None, answer.content)
    assert (draft.kind, draft.stream, draft.tags) == ("turn", False, {"client": "test"})
    assert (draft.model, draft.upstream_name) == ("m", "stub")
    assert draft.total_ms is not None
    assert wait_for(lambda: home.seen or None, "a call of on_record") == [draft]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_streamed_exchange(dialect: Dialect, client: httpx.Client, home: House) -> None:
    seen: list[int] = []
    with client.stream("POST", PATHS[dialect], json=body_of(dialect, "hi", stream=True)) as answer:
        receipt = answer.headers["x-reef-agent-record-id"]
        parts = []
        for part in answer.iter_raw():
            if receipt.encode() in part:
                seen.append(len(home.records.drafts))
            parts.append(part)
    (draft,) = home.records.drafts
    assert seen == [1], "the receipt goes out once, and after the record was stored"
    assert (draft.id, draft.status, draft.stream) == (receipt, "complete", True)
    sent = b"".join(parts)
    assert sent != draft.response
    assert receipt.encode() not in draft.response
    events = sse.split(sent)[0]
    if dialect == "chat":
        assert b"".join(event for event in events if receipt.encode() not in event) == draft.response
    else:
        member = f',"reef":{{"agent_record_id":"{receipt}"}}'.encode()
        assert sent.replace(member, b"") == draft.response
    assert codec_for(dialect).parse(sent, stream=True).text == "echo: hi"
    assert draft.ttft_ms is not None


def test_scenario_and_run_in_the_path_and_headers_that_win(client: httpx.Client, home: House) -> None:
    client.post("/s/one/r/run7/v1/chat/completions", json=body_of("chat"))
    client.post("/s/one/v1/messages", json=body_of("messages"), headers={"x-reef-scenario": "two"})
    client.post(
        "/s/one/r/run7/v1/responses",
        json=body_of("responses"),
        headers={"x-reef-tag-run": "own", "session_id": "S", "x-reef-artifact-version": "abc"},
    )
    client.post(
        "/v1/chat/completions", json=body_of("chat"), headers={"x-reef-tag-session": "T", "session-id": "S"}
    )
    found = [(draft.scenario, draft.run, draft.session) for draft in home.records.drafts]
    assert found == [("one", "run7", None), ("two", None, None), ("one", "own", "S"), ("default", None, "T")]
    assert home.scenarios.starts[-2:] == ["abc", None]


def test_a_bad_scenario_name_is_refused(client: httpx.Client, stub: StubProvider) -> None:
    answer = client.post("/v1/messages", json=body_of("messages"), headers={"x-reef-scenario": ".no"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert not stub.asked


def test_a_scenario_may_be_required(stub: StubProvider) -> None:
    with house(stub.url, require_scenario=True) as strict:
        answer = httpx.post(f"{strict.url}/v1/chat/completions", json=body_of("chat"))
        assert (answer.status_code, "x-reef-scenario" in answer.text) == (400, True)
        assert httpx.post(f"{strict.url}/s/x/v1/chat/completions", json=body_of("chat")).status_code == 200


def test_tokens_are_counted_and_recorded_as_such(client: httpx.Client, home: House) -> None:
    answer = client.post("/v1/messages/count_tokens?beta=true", json=body_of("messages", "one two"))
    assert answer.json() == {"input_tokens": 2}
    assert [draft.kind for draft in home.records.drafts] == ["count_tokens"]


def test_models_in_both_shapes(client: httpx.Client) -> None:
    rows = client.get("/v1/models?limit=5").json()["data"]
    assert [(row["id"], row["object"]) for row in rows] == [("stub-model", "model")]
    page = client.get("/s/x/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
    assert (page["data"][0]["type"], page["first_id"]) == ("model", "stub-model")
    assert client.get("/v1/models/stub-model").json()["id"] == "stub-model"
    missing = client.get("/v1/models/org/none")
    assert (missing.status_code, "stub-model" in missing.text) == (404, True)


def test_other_routes_are_refused_in_the_providers_shape(client: httpx.Client) -> None:
    answer = client.get("/v1/responses", headers={"upgrade": "websocket", "connection": "Upgrade"})
    assert answer.status_code == 426
    openai = client.get("/v1/files")
    assert (openai.status_code, openai.json()["error"]["code"]) == (404, "not_found")
    for answer in (
        client.post("/v1/messages/batches", json={}),
        client.get("/v1/files", headers={"anthropic-version": "1"}),
    ):
        assert (answer.status_code, answer.json()["type"]) == (404, "error")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_compressed_requests_go_on_plain(
    encoding: str, client: httpx.Client, home: House, stub: StubProvider
) -> None:
    plain = json.dumps(body_of("chat", "packed")).encode()
    packed = gzip.compress(plain) if encoding == "gzip" else zstandard.compress(plain)
    headers = {"content-encoding": encoding, "content-type": "application/json"}
    answer = client.post("/v1/chat/completions", content=packed, headers=headers)
    assert answer.status_code == 200
    assert stub.asked[0].body == home.records.drafts[0].request == plain
    assert "content-encoding" not in stub.asked[0].headers


def test_bodies_are_bounded_packed_or_not(stub: StubProvider) -> None:
    with house(stub.url, max_body=2000) as small, httpx.Client(base_url=small.url) as client:
        long = json.dumps(body_of("messages", "x" * 3000)).encode()
        for content, encoding in ((long, "identity"), (gzip.compress(long), "gzip")):
            answer = client.post("/v1/messages", content=content, headers={"content-encoding": encoding})
            assert answer.status_code == 413
            assert answer.json()["error"]["type"] == "request_too_large"
            assert "raise [reef] max_body_mb" in answer.json()["error"]["message"]
        broken = client.post("/v1/messages", content=b"no", headers={"content-encoding": "gzip"})
        unknown = client.post("/v1/messages", content=b"no", headers={"content-encoding": "br"})
        assert (broken.status_code, unknown.status_code) == (400, 400)


def test_a_body_that_is_no_json_is_400_in_the_providers_shape(client: httpx.Client, home: House) -> None:
    answer = client.post("/v1/chat/completions", content=b"{nope")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    assert not home.records.drafts


def test_an_upstream_that_packs_unasked(client: httpx.Client, home: House, stub: StubProvider) -> None:
    whole = b'{"choices":[{"message":{"content":"hi"}}]}'
    packed = {"content-encoding": "gzip"}
    stub.answer = lambda asked: Raw((gzip.compress(whole),), headers=packed)
    answer = client.post("/v1/chat/completions", json=body_of("chat"))
    assert answer.content == home.records.drafts[0].response == whole
    stream = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
    stub.answer = lambda asked: Raw((gzip.compress(stream),), "text/event-stream", packed)
    streamed = client.post("/v1/chat/completions", json=body_of("chat", stream=True))
    assert streamed.content.endswith(b"data: [DONE]\n\n")
    assert home.records.drafts[1].response == stream
    stub.answer = lambda asked: Raw((b"?",), "text/event-stream", {"content-encoding": "br"})
    assert client.post("/v1/chat/completions", json=body_of("chat")).status_code == 502


def test_headers_of_an_upstream(client: httpx.Client, home: House, stub: StubProvider) -> None:
    stub.headers = {
        "request-id": "req_1",
        "x-reef-agent-record-id": "forged",
        "x-reef-anything": "1",
        "set-cookie": "a=b",
        "x-ratelimit-remaining": "7",
    }
    for stream in (False, True):
        answer = client.post("/v1/messages", json=body_of("messages", stream=stream))
        draft = home.records.drafts[-1]
        assert answer.headers.get_list("x-reef-agent-record-id") == [draft.id]
        assert answer.headers["request-id"] == draft.upstream_request_id == "req_1"
        assert list(draft.aliases) == ["req_1"]
        assert answer.headers["x-ratelimit-remaining"] == "7"
        assert not {"x-request-id", "x-reef-anything", "set-cookie"} & set(answer.headers)


def test_injection_reaches_the_upstream_and_the_record_keeps_both(stub: StubProvider) -> None:
    stub.asked.clear()
    prefix = Prefix("Be brief.", (("q", "a"),))
    with house(stub.url, prefix=prefix) as evolved, httpx.Client(base_url=evolved.url) as client:
        for dialect in DIALECTS:
            client.post(PATHS[dialect], json=body_of(dialect))
            asked, draft = stub.asked[-1], evolved.records.drafts[-1]
            assert (asked.system, asked.user) == ("Be brief.", "hi")
            assert asked.turns[:2] == [("user", "q"), ("assistant", "a")]
            assert draft.forwarded == asked.body != draft.request
        client.post("/v1/chat/completions", json=body_of("chat"), headers={"x-reef-tag-release": "own"})
        assert stub.asked[-1].system == ""
        assert (evolved.records.drafts[-1].release_id, evolved.records.drafts[-1].forwarded) == ("own", None)


def test_a_missing_model_is_filled_in(client: httpx.Client, home: House, stub: StubProvider) -> None:
    client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]})
    assert stub.asked[0].payload["model"] == "stub-model"
    assert (home.records.drafts[0].model, home.records.drafts[0].forwarded) == (
        "stub-model",
        stub.asked[0].body,
    )


def test_a_session_that_looks_like_a_credential_is_no_clear_text(client: httpx.Client, home: House) -> None:
    secrets = ["sk-proj-" + "a1b2" * 6 + end for end in "12"]
    for secret in secrets:
        headers = {"x-session-id": secret, "x-reef-tag-run": secret}
        assert client.post(PATHS["chat"], json=body_of("chat"), headers=headers).status_code == 200
    drafts = home.records.drafts
    assert len({draft.session for draft in drafts}) == len({draft.run for draft in drafts}) == 2
    assert not [draft for draft in drafts if "a1b2" in f"{draft.session}{draft.run}{draft.conversation}"]
