"""Base URLs, methods and slashes that are not quite right."""

from collections.abc import Iterator

import anthropic
import httpx
import openai
import pytest

from daemon.settings.model import UpstreamSection
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import house
from tests.stub_provider import StubProvider


@pytest.mark.parametrize("scope", ["", "/s/shop", "/s/shop/r/7"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_v1_twice_names_the_base_url_that_is_right(
    client: httpx.Client, stub: StubProvider, dialect: Dialect, scope: str
) -> None:
    answer = client.post(f"{scope}/v1{PATHS[dialect]}", json=body_of(dialect))
    right = f"{client.base_url}".rstrip("/") + scope + ("" if dialect == "messages" else "/v1")
    message = answer.json()["error"]["message"]
    assert answer.status_code == 404
    assert message.endswith(f"has /v1 twice (hint: the client's base URL should be {right})")
    assert not stub.asked


def test_a_base_url_that_is_a_path_already(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions/chat/completions", json=body_of("chat"))
    right = f"{client.base_url}".rstrip("/") + "/v1"
    message = answer.json()["error"]["message"]
    assert message.endswith(f"has /chat/completions too much (hint: the client's base URL should be {right})")


def test_a_base_url_that_is_anthropics_path_already(client: httpx.Client) -> None:
    answer = client.post("/v1/messages/v1/messages", json=body_of("messages"))
    right = f"{client.base_url}".rstrip("/")
    message = answer.json()["error"]["message"]
    assert message.endswith(f"has /messages/v1 too much (hint: the client's base URL should be {right})")


def test_the_sdks_show_it(client: httpx.Client) -> None:
    base = f"{client.base_url}".rstrip("/")
    turns = [{"role": "user", "content": "hi"}]
    with (
        anthropic.Anthropic(base_url=f"{base}/v1", api_key="k") as claude,
        pytest.raises(anthropic.NotFoundError, match=f"should be {base}\\)"),
    ):
        claude.messages.create(model="m", max_tokens=9, messages=turns)
    with (
        openai.OpenAI(base_url=f"{base}/v1/v1/", api_key="k") as gpt,
        pytest.raises(openai.NotFoundError, match=f"should be {base}/v1\\)"),
    ):
        gpt.models.list()


@pytest.mark.parametrize("path", ["/v1/v1/other", "/v1/v1", "/v1/v2/messages"])
def test_other_paths_are_no_base_urls_fault(client: httpx.Client, path: str) -> None:
    answer = client.post(path, json={})
    assert (answer.status_code, "relay" in answer.json()["error"]["message"]) == (404, True)


@pytest.mark.parametrize("slashes", ["/", "//"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_slash_at_the_end_counts_for_nothing(
    client: httpx.Client, stub: StubProvider, dialect: Dialect, slashes: str
) -> None:
    answer = client.post(f"{PATHS[dialect]}{slashes}?beta=true", json=body_of(dialect))
    assert (answer.status_code, "x-reef-agent-record-id" in answer.headers) == (200, True)
    assert stub.asked[0].path == f"{PATHS[dialect]}?beta=true"
    assert client.get("/v1/models/").json() == client.get("/v1/models").json()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("GET", "/v1/messages/count_tokens/", "POST"),
        ("GET", "/v1/responses", "POST"),
        ("PUT", "/v1/messages", "POST"),
        ("GET", "/v1/embeddings", "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("DELETE", "/v1/models/m", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_one(
    client: httpx.Client, stub: StubProvider, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert f"{method} {path.rstrip('/')} is not served" in error["message"]
    assert not stub.asked


def test_models_without_a_body(client: httpx.Client) -> None:
    for path in ("/v1/models", "/v1/models/stub-model", "/v1/models/none"):
        told, head = client.get(path), client.head(path)
        assert (head.status_code, head.content) == (told.status_code, b"")
        assert head.headers["content-length"] == str(len(told.content))


@pytest.fixture(scope="module")
def patterned(provider: StubProvider) -> Iterator[str]:
    sections = [
        UpstreamSection(
            name="listing", base_url=provider.url, models=("claude-*", "org/*"), alias={"gpt-*": "own"}
        ),
        UpstreamSection(name="open", base_url=provider.url),
    ]
    with house(sections) as built:
        yield built.url


@pytest.mark.parametrize("name", ["claude-x", "org/some/model", "gpt-5"])
def test_a_model_that_a_pattern_takes_is_there(patterned: str, stub: StubProvider, name: str) -> None:
    row = httpx.get(f"{patterned}/v1/models/{name}").json()
    assert (row["id"], row["owned_by"]) == (name, "listing")
    row = httpx.get(f"{patterned}/v1/models/{name}", headers={"anthropic-version": "1"}).json()
    assert (row["id"], row["type"]) == (name, "model")


def test_who_lists_its_models_has_no_others(patterned: str, stub: StubProvider) -> None:
    answer = httpx.get(f"{patterned}/v1/models/other")
    assert (answer.status_code, "no upstream offers the model `other`" in answer.text) == (404, True)


def test_who_lists_none_may_have_any() -> None:
    with house([UpstreamSection(name="silent", base_url="http://127.0.0.1:9")]) as built:
        assert httpx.get(f"{built.url}/v1/models/other").json()["owned_by"] == "silent"
    with house([UpstreamSection(name="silent", base_url="http://127.0.0.1:9", model="m")]) as built:
        assert httpx.get(f"{built.url}/v1/models/m").status_code == 200
        answer = httpx.get(f"{built.url}/v1/models/other")
        assert (answer.status_code, "there is: m" in answer.text) == (404, True)
