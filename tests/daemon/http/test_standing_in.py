"""What a client and its record are told when neither an upstream nor who stands in for it can serve."""

import gzip
import json
from collections.abc import Iterator

import anthropic
import httpx
import openai
import pytest

from daemon.runtimes.upstream import HttpUpstream
from daemon.settings.model import UpstreamSection
from reef.errors import Unavailable
from reef.runtime import DIALECTS, Dialect, ProviderRequest, ProviderResponse
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import house
from tests.e2e.running import free_port
from tests.stub_provider import Fault, Raw, StubProvider


@pytest.fixture(scope="module")
def other() -> Iterator[StubProvider]:
    with StubProvider(lambda asked: "from the other") as started:
        yield started


def section(name: str, url: str, **more: object) -> UpstreamSection:
    return UpstreamSection.model_validate({"name": name, "base_url": url, **more})


def nobody() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 503])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_wrong_with_a_stand_in_does_not_hide_why_it_was_asked(
    stub: StubProvider, other: StubProvider, dialect: Dialect, status: int
) -> None:
    stub.answer = lambda asked: Fault(503, "too many of you")
    other.answer = lambda asked: Fault(status, f"I answer {status}", {"retry-after": "40"})
    both = [section("a", stub.url, fallback=["b", "c"]), section("b", other.url), section("c", nobody())]
    with house(both) as built:
        answer = httpx.post(built.url + PATHS[dialect], json=body_of(dialect))
        (draft,) = built.records.drafts
    message = answer.json()["error"]["message"]
    assert answer.status_code == 502
    assert "retry-after" not in answer.headers, "another's patience is not what the first one asks for"
    assert message.startswith("upstream `a` answered 503: overloaded: too many of you (standing in for it: ")
    assert f"`b` answered {status}" in message
    assert f"I answer {status}" in message
    assert "`c`" in message
    assert (draft.status, draft.http_status, draft.upstream_name) == ("failed", 503, "a")
    assert ["`b`" in draft.attempts[0], "`c`" in draft.attempts[1]] == [True, True]
    assert len(draft.attempts) == 2


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_a_refusal_keeps_its_status_its_advice_and_its_shape(stub: StubProvider, api: str) -> None:
    """Also where the upstream's dialect is not the client's."""
    stub.answer = lambda asked: Fault(429, "slow down", {"retry-after": "3600"})
    both = [section("a", stub.url, api=[api], fallback=["b"]), section("b", nobody(), api=[api])]
    with house(both) as built, anthropic.Anthropic(base_url=built.url, api_key="k", max_retries=0) as client:
        with pytest.raises(anthropic.RateLimitError, match=r"slow down .*`b` at .* refused") as caught:
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
        (draft,) = built.records.drafts
    assert caught.value.response.headers["retry-after"] == "3600"
    assert (draft.http_status, draft.upstream_name, draft.bridged) == (
        429,
        "a",
        None if api == "messages" else "chat",
    )
    assert json.loads(draft.response)["error"]["message"].startswith("slow down (standing in for it: ")


def test_an_error_page_is_told_in_the_providers_shape(stub: StubProvider) -> None:
    stub.answer = lambda asked: Raw((b"<h1>Too busy</h1>",), "text/html", status=429)
    both = [section("a", stub.url, fallback=["b"]), section("b", nobody())]
    with (
        house(both) as built,
        openai.OpenAI(base_url=f"{built.url}/v1", api_key="k", max_retries=0) as client,
        pytest.raises(openai.RateLimitError, match=r"<h1>Too busy</h1> \(standing in") as caught,
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert caught.value.response.headers["content-type"] == "application/json"


def test_nobody_there(other: StubProvider) -> None:
    """The first one cannot be reached, and the other does not know the model."""
    other.answer = lambda asked: Fault(404, "no such model")
    both = [
        section("a", nobody(), fallback=["b", "c"]),
        section("b", other.url),
        section("c", nobody(), auth="passthrough"),
    ]
    with house(both) as built:
        answer = httpx.post(f"{built.url}/v1/messages", json=body_of("messages"))
        (draft,) = built.records.drafts
    assert answer.status_code == 502, "a key that only the last one wants is not the client's fault"
    for part in (
        "`a` at",
        "refused the connection",
        "no such model",
        "`c` takes the client's own key",
        "check that it runs",
    ):
        assert part in answer.json()["error"]["message"]
    assert (draft.upstream_name, draft.http_status, len(draft.attempts)) == ("a", None, 2)


def test_the_first_ones_own_tries_stay_in_the_record(stub: StubProvider) -> None:
    stub.answer = lambda asked: Fault(503, headers={"retry-after-ms": "1"})
    both = [section("a", stub.url, retries=1, fallback=["b"]), section("b", nobody())]
    with house(both) as built:
        httpx.post(f"{built.url}/v1/messages", json=body_of("messages"))
        (draft,) = built.records.drafts
    assert draft.attempts[0] == "upstream `a` answered 503"
    assert "`b`" in draft.attempts[1]
    assert len(draft.attempts) == 2, "the last failure of `a` is the record's own"


def test_one_that_is_only_loading_is_worth_waiting_for(
    stub: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = HttpUpstream.send

    async def loading(self: HttpUpstream, request: ProviderRequest) -> ProviderResponse:
        if self.name == "b":
            raise Unavailable("the model is loading", retry_after_s=4)
        return await send(self, request)

    monkeypatch.setattr(HttpUpstream, "send", loading)
    stub.answer = lambda asked: Fault(503)
    with house([section("a", stub.url, fallback=["b"]), section("b", stub.url)]) as built:
        answer = httpx.post(f"{built.url}/v1/messages", json=body_of("messages"))
        (draft,) = built.records.drafts
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "4")
    assert "`a` answered 503" in answer.json()["error"]["message"]
    assert (draft.status, draft.attempts) == ("failed", ["the model is loading"])
    assert answer.headers["x-reef-agent-record-id"] == draft.id


@pytest.mark.parametrize(
    ("own", "asked_for"),
    [
        ({"model": "qwen"}, "m"),
        ({"model": "qwen", "alias": {"m*": "qwen"}}, "qwen"),
        ({"model": "qwen", "alias": {"m": "small"}}, "small"),
        ({}, "m"),
    ],
)
def test_a_stand_in_is_asked_by_its_alias_alone(
    stub: StubProvider, other: StubProvider, own: dict[str, object], asked_for: str
) -> None:
    stub.answer = lambda asked: Fault(500)
    other.answer = lambda asked: "from the other"
    other.asked.clear()
    first = section("a", stub.url, models=["m"], fallback=["b"])
    with house([first, section("b", other.url, **own)]) as built:
        answer = httpx.post(f"{built.url}/v1/chat/completions", json=body_of("chat"))
        (draft,) = built.records.drafts
    assert answer.status_code == 200
    assert other.asked[0].payload["model"] == asked_for
    assert (draft.model, draft.upstream_name) == ("m", "b")
    assert draft.attempts == ["upstream `a` answered 500: the stub was told to fail"]


def test_a_token_count_that_nobody_gives_is_estimated(stub: StubProvider, other: StubProvider) -> None:
    """One that stands in and knows no such path is no reason to fail."""
    other.api, usual = ("chat",), other.api
    try:
        both = [section("a", nobody(), fallback=["b"]), section("b", other.url)]
        with house(both) as built:
            answer = httpx.post(f"{built.url}/v1/messages/count_tokens", json=body_of("messages", "one two"))
    finally:
        other.api = usual
    assert (answer.status_code, answer.headers["x-reef-estimate"]) == (200, "1")


def test_a_long_packed_failure_is_read_as_far_as_it_tells(stub: StubProvider, other: StubProvider) -> None:
    packed = gzip.compress(b"<p>too many of you" + b" " * 200_000)
    stub.answer = lambda asked: Raw((packed,), "text/html", {"content-encoding": "gzip"}, 502)
    other.answer = lambda asked: "from the other"
    with house([section("a", stub.url, fallback=["b"]), section("b", other.url)]) as built:
        answer = httpx.post(f"{built.url}/v1/chat/completions", json=body_of("chat"))
        (draft,) = built.records.drafts
    assert (answer.status_code, "from the other" in answer.text) == (200, True)
    assert "too many of you" in draft.attempts[0]
