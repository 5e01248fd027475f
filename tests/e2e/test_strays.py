"""Paths that miss the provider routes by a slash, a name or `/v1`: told in the provider's own shape."""

from collections.abc import Iterator
from pathlib import Path

import anthropic
import httpx
import pytest

from tests.e2e.running import TOKEN, Daemon, running
from tests.stub_provider import StubProvider


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder: Path = tmp_path_factory.mktemp("strays")
    with StubProvider() as stub, running(folder, "--upstream", stub.url, "--reef.relay", '["/*"]') as started:
        yield started
        assert not stub.asked, "what is no route is passed on to nobody"


STRAYS = {
    "//v1/messages": "the client's base URL should be {url}",
    "/s/ok1//v1/messages": "the client's base URL should be {url}/s/ok1",
    "/s/ok1/r/7//v1/messages": "the client's base URL should be {url}/s/ok1/r/7",
    "//v1/chat/completions": "the client's base URL should be {url}/v1",
    "/s/ok1///v1/models": "the client's base URL should be {url}/s/ok1/v1",
    "/s//v1/messages": "before /v1 stands nothing, /s/SCENARIO or /s/SCENARIO/r/RUN",
    "/s/ok1/r//v1/messages": "before /v1 stands nothing, /s/SCENARIO or /s/SCENARIO/r/RUN",
    "/s/v1/responses": "before /v1 stands nothing, /s/SCENARIO or /s/SCENARIO/r/RUN",
    "/messages": "an Anthropic client's does not",
    "/chat/completions": "an OpenAI client's base URL ends in /v1",
}


@pytest.mark.parametrize("path", STRAYS)
def test_a_wrong_base_url_is_told_in_the_providers_shape(daemon: Daemon, path: str) -> None:
    url = daemon.url
    wanted = STRAYS[path].format(url=url)
    with daemon.client() as client:
        answer = client.post(f"{url}{path}", json={"model": "m"})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (404, "not_found_error")
    assert wanted in error["hint"]
    assert error["message"].endswith(f"(hint: {error['hint']})"), "SDKs show nothing but the message"
    assert (answer.json().get("type") == "error") == ("messages" in path)
    refused = httpx.post(f"{url}{path}", json={}).json()
    assert refused["error"]["type"] == "authentication_error", "without a token too"
    assert (refused.get("type") == "error") == ("messages" in path)


def test_an_sdk_shows_it(daemon: Daemon) -> None:
    with (
        anthropic.Anthropic(base_url=f"{daemon.url}/s//", api_key=TOKEN, max_retries=0) as claude,
        pytest.raises(anthropic.NotFoundError, match="names no scenario"),
    ):
        claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("path", ["/other", "/s/a", "/reef/v1/messages", "//reef/status"])
def test_other_paths_are_told_in_reefs_own(daemon: Daemon, path: str) -> None:
    with daemon.client() as client:
        answer = client.post(f"{daemon.url}{path}", json={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "hint"),
    [
        ("GET", "/", "Reef's own routes are below /reef (GET /reef/status tells what runs)"),
        ("GET", "/reef", "Reef's own routes are below /reef"),
        ("GET", "/reef/statu", "did you mean /reef/status?"),
        ("POST", "/reef/status", "send GET or HEAD"),
        ("DELETE", "/reef/scenarios", "send GET or HEAD or POST"),
        ("GET", "/reef/records?order=up", "one of asc, desc"),
        ("POST", "/reef/scenarios", 'send {"name": "..."}'),
    ],
)
def test_what_reef_itself_refuses_has_a_hint(daemon: Daemon, method: str, path: str, hint: str) -> None:
    with daemon.client() as client:
        answer = client.request(method, f"{daemon.url}{path}", json={} if method == "POST" else None)
    assert (answer.status_code >= 400, answer.json()["error"]["hint"][: len(hint)]) == (True, hint)


@pytest.mark.parametrize(
    ("body", "hint"), [(b"{", "send one JSON object"), (b"[]", "its keys: name, release_id")]
)
def test_a_body_that_is_no_object(daemon: Daemon, body: bytes, hint: str) -> None:
    with daemon.client() as client:
        answer = client.post(f"{daemon.url}/reef/scenarios", content=body)
    assert (answer.status_code, answer.json()["error"]["hint"]) == (400, hint)
