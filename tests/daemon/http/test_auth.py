"""Who may come in, and that Reef's token goes no further."""

from collections.abc import Iterator

import httpx
import pytest

from daemon.settings.model import UpstreamSection
from tests.daemon.http.asking import body_of
from tests.daemon.serving.house import house
from tests.stub_provider import StubProvider


@pytest.fixture(scope="module")
def url(provider: StubProvider) -> Iterator[str]:
    section = UpstreamSection(name="stub", base_url=provider.url, auth="passthrough")
    with house([section], tokens=["reef-1", "reef-2"]) as guarded:
        yield guarded.url


def ask(url: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{url}/v1/messages", json=body_of("messages"), headers=named)


@pytest.mark.parametrize(
    "headers",
    [
        {"x_reef_token": "reef-2", "authorization": "Bearer own"},
        {"authorization": "Bearer own", "x_api_key": "reef-1", "x_reef_token": "reef-1"},
        {"authorization": "Bearer own", "x_reef_token": "reef-1"},
    ],
)
def test_the_clients_key_goes_on_and_reefs_token_does_not(
    url: str, stub: StubProvider, headers: dict[str, str]
) -> None:
    assert ask(url, **headers).status_code == 200
    assert stub.asked[-1].headers["authorization"] == "Bearer own"
    assert not [value for value in stub.asked[-1].headers.values() if "reef-" in value]


def test_a_token_in_the_place_of_the_key_is_not_sent(url: str, stub: StubProvider) -> None:
    for headers in ({"authorization": "bearer reef-1"}, {"x_api_key": "reef-2"}):
        answer = ask(url, **headers)
        assert (answer.status_code, answer.json()["type"]) == (401, "error")
        assert "x-reef-token" in answer.json()["error"]["message"]
    assert not stub.asked


def test_a_key_alone_opens_nothing(url: str, stub: StubProvider) -> None:
    for headers in ({}, {"authorization": "Bearer own"}, {"x_reef_token": "own", "x_api_key": "reef-1"}):
        answer = ask(url, **headers)
        assert (answer.status_code, "no valid token" in answer.text) == (401, True)
    assert not stub.asked


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages/batches", "/v1/other"])
def test_a_stranger_is_refused_in_the_words_of_his_provider(url: str, path: str) -> None:
    anthropics = httpx.get(url + path, headers={"anthropic-version": "2023-06-01"})
    assert (anthropics.status_code, anthropics.json()["type"]) == (401, "error")
    openais = httpx.get(url + path)
    assert (openais.status_code, openais.json().get("type")) == (401, "error" if "messages" in path else None)
