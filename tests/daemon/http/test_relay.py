"""Paths that are passed on unrecorded: bytes both ways, and nothing that was not asked for."""

import gzip
from collections.abc import Iterator

import httpx
import pytest

from daemon.settings.model import UpstreamSection
from tests.daemon.serving.house import House, house
from tests.stub_provider import Fault, Raw, StubProvider


@pytest.fixture(scope="module")
def relaying(provider: StubProvider) -> Iterator[House]:
    section = UpstreamSection(
        name="stub",
        base_url=provider.url,
        api_key_env="STUB_KEY",
        alias={"text-embedding-3": "local-embed"},
    )
    with house([section], relay=["/files", "/files/*", "/messages/batches"]) as built:
        yield built


@pytest.fixture
def client(relaying: House, stub: StubProvider) -> Iterator[httpx.Client]:
    relaying.records.drafts.clear()
    with httpx.Client(base_url=relaying.url) as opened:
        yield opened
    assert not relaying.records.drafts


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions", "/s/shop/r/7/v1/embeddings"])
def test_embeddings_and_completions(client: httpx.Client, stub: StubProvider, path: str) -> None:
    body = b'{ "model":"other", "input": ["a"] }'
    answer = client.post(f"{path}?x=%2F", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.content) == (200, body)
    (asked,) = stub.asked
    assert asked.path == f"/v1/{path.rpartition('/')[2]}?x=%2F"
    assert asked.headers["authorization"] == "Bearer upstream-secret"
    assert "x-reef-agent-record-id" not in answer.headers


def test_an_alias_holds_there_too(client: httpx.Client, stub: StubProvider) -> None:
    client.post("/v1/embeddings", json={"model": "text-embedding-3", "input": "a"})
    assert stub.asked[0].payload["model"] == "local-embed"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_the_user_lists(client: httpx.Client, stub: StubProvider, method: str) -> None:
    content = b"--x\r\nnot json" if method == "POST" else b""
    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = client.request(method, "/v1/files/a%20b", content=content, headers=headers)
    assert (answer.status_code, answer.content) == (200, content)
    assert (stub.asked[0].dialect, stub.asked[0].path) == (method, "/v1/files/a%20b")


def test_anthropics_own_get_its_headers(client: httpx.Client, stub: StubProvider) -> None:
    assert client.post("/v1/messages/batches", json={"requests": []}).status_code == 200
    assert stub.asked[0].headers["x-api-key"] == "upstream-secret"
    assert "anthropic-version" in stub.asked[0].headers


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/other"), ("POST", "/v1/other"), ("GET", "/v1/files/%2e%2e/x")]
)
def test_nothing_else_is(client: httpx.Client, stub: StubProvider, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, "relay" in answer.json()["error"]["message"]) == (404, True)
    assert not stub.asked


@pytest.mark.parametrize(("said", "status"), [(418, 400), (404, 404), (429, 429), (500, 502), (503, 502)])
def test_errors_keep_their_words(client: httpx.Client, stub: StubProvider, said: int, status: int) -> None:
    stub.answer = lambda asked: Fault(said, "no such thing", {"retry-after": "3"})
    answer = client.post("/v1/embeddings", json={"input": "a"})
    assert (answer.status_code, "no such thing" in answer.text) == (status, True)


def test_a_stream_goes_out_as_it_comes(client: httpx.Client, stub: StubProvider) -> None:
    chunks = (b'data: {"text":"a"}\n\n', b"data: [DONE]\n\n")
    stub.answer = lambda asked: Raw(chunks, "text/event-stream")
    assert client.post("/v1/completions", json={"stream": True}).content == b"".join(chunks)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_packed_unasked(client: httpx.Client, stub: StubProvider, kind: str) -> None:
    packed = gzip.compress(b"data: 1\n\n")
    stub.answer = lambda asked: Raw((packed,), kind, {"content-encoding": "gzip"})
    assert client.post("/v1/completions", json={}).content == b"data: 1\n\n"


def test_an_upstream_that_has_no_such_path_is_said(provider: StubProvider, stub: StubProvider) -> None:
    with house([UpstreamSection(name="claude", base_url=provider.url, api=("anthropic",))]) as narrow:
        answer = httpx.post(f"{narrow.url}/v1/embeddings", json={"input": "a"})
        assert (answer.status_code, "`claude`" in answer.text) == (501, True)
    assert not stub.asked


def test_what_names_no_model_goes_to_the_first_that_speaks_its_dialect(
    provider: StubProvider, stub: StubProvider
) -> None:
    """Also where every upstream takes some models only."""
    sections = [
        UpstreamSection(
            name="claude", base_url="http://127.0.0.1:9", api=("anthropic",), models=("claude-*",)
        ),
        UpstreamSection(name="gpt", base_url=provider.url, api=("openai",), models=("gpt-*",)),
        UpstreamSection(name="last", base_url="http://127.0.0.1:9", models=("x",)),
    ]
    with house(sections, relay=["/files/*"], upstream_of={"shop": "last"}.get) as built:
        assert httpx.get(f"{built.url}/v1/files/abc").status_code == 200
        assert [asked.path for asked in stub.asked] == ["/v1/files/abc"]
        named = httpx.post(f"{built.url}/v1/files/abc", json={"model": "other"})
        assert (named.status_code, "no upstream takes the model `other`" in named.text) == (404, True)
        for path, headers in (("/v1/files/a", {"anthropic-version": "1"}), ("/s/shop/v1/files/a", {})):
            elsewhere = httpx.get(built.url + path, headers=headers)
            assert elsewhere.status_code == 502
            assert ("`claude`" if headers else "`last`") in elsewhere.text


def test_a_redirect_leads_nobody_elsewhere(client: httpx.Client, stub: StubProvider) -> None:
    stub.answer = lambda asked: Raw(
        (b"",), "text/plain", {"location": "https://elsewhere.example/v1/embeddings?key=1"}, 307
    )
    answer = client.post("/v1/embeddings", json={"input": "a"})
    assert (answer.status_code, "location" in answer.headers) == (502, False)
    assert "it redirects to https://elsewhere.example/v1/embeddings (" in answer.json()["error"]["message"]
    stub.answer = lambda asked: Raw((b"",), "text/plain", {"etag": '"1"'}, 304)
    kept = client.get("/v1/files/a", headers={"if-none-match": '"1"'})
    assert (kept.status_code, kept.headers["etag"]) == (304, '"1"')
