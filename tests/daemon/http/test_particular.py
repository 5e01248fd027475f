"""Upstreams that are particular: what they do not take back, and answers in which they say nothing."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from daemon.settings.model import UpstreamSection
from reef.runtime import Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import House, house
from tests.stub_dialects import sse
from tests.stub_provider import Answer, Asked, Fault, Raw, StubProvider

THOUGHT = {
    "model": "m",
    "max_tokens": 99,
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "text", "text": "hello"},
            ],
        },
        {"role": "user", "content": "and?"},
    ],
}
MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
UNSUPPORTED = "'messages.1' : property 'reasoning_content' is unsupported"


def particular(asked: Asked) -> Answer:
    """Takes back no thoughts."""
    return Fault(400, UNSUPPORTED) if b"reasoning_content" in asked.body else "ok"


def ask(home: House) -> httpx.Response:
    return httpx.post(home.url + PATHS["messages"], json=THOUGHT)


@pytest.mark.parametrize("others", [0, 1])
def test_one_that_takes_back_no_thoughts_is_asked_without(others: int) -> None:
    with StubProvider() as stub, StubProvider() as other:
        stub.api = other.api = ("chat",)
        stub.answer = particular
        names = {"first": stub.url, "second": other.url}
        sections = [UpstreamSection(name=name, base_url=url, api=("chat",)) for name, url in names.items()]
        if others:
            sections[0] = sections[0].model_copy(update={"fallback": ("second",)})
        with house(sections[: 1 + others]) as home:
            answers = [ask(home), ask(home)]
            assert [answer.json()["content"][0]["text"] for answer in answers] == ["ok", "ok"]
            first, second = home.records.drafts
        assert len(stub.asked) == 3, "once it is known, it is not tried again"
        assert not other.asked
        assert [UNSUPPORTED in attempt for attempt in first.attempts] == [True]
        assert not second.attempts
        assert first.dropped == second.dropped == ["messages[].content[].thinking"]
        assert b"hm" in first.request
        assert b"hm" not in (first.forwarded or b"hm")


def test_one_that_takes_them_gets_them_and_another_refusal_is_its_own() -> None:
    with (
        StubProvider() as stub,
        house([UpstreamSection(name="only", base_url=stub.url, api=("chat",))]) as home,
    ):
        stub.api = ("chat",)
        assert ask(home).status_code == 200
        assert stub.asked[0].payload["messages"][1]["reasoning_content"] == "hm"
        assert not home.records.drafts[0].dropped
        stub.answer = lambda asked: Fault(400, "no such model")
        answer = ask(home)
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, "no such model")
        stub.answer = lambda asked: Fault(400, MISSING)
        assert MISSING in ask(home).json()["error"]["message"]
        assert len(stub.asked) == 3, "it wants more of them, not less"


def test_one_that_refuses_without_them_too_gets_them_again() -> None:
    """And its first words are what the client hears."""
    with (
        StubProvider() as stub,
        house([UpstreamSection(name="only", base_url=stub.url, api=("chat",))]) as home,
    ):
        stub.api = ("chat",)
        stub.answer = lambda asked: Fault(400, UNSUPPORTED if b"reasoning_content" in asked.body else "other")
        answers = [ask(home), ask(home)]
        drafts = home.records.drafts
    assert [UNSUPPORTED in answer.json()["error"]["message"] for answer in answers] == [True, True]
    assert [b"reasoning_content" in asked.body for asked in stub.asked] == [True, False, True, False]
    assert [(draft.attempts, draft.dropped) for draft in drafts] == [([], []), ([], [])]
    assert b"hm" in (drafts[0].forwarded or b"")


def test_turns_at_once_are_all_asked_without() -> None:
    with (
        StubProvider() as stub,
        house([UpstreamSection(name="only", base_url=stub.url, api=("chat",))]) as home,
    ):
        stub.api = ("chat",)
        stub.answer, stub.delay_s = particular, 0.3
        with ThreadPoolExecutor(3) as pool:
            answers = [each.result(20) for each in [pool.submit(ask, home) for _ in range(3)]]
    assert [answer.status_code for answer in answers] == [200] * 3


CHAT = [
    sse({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
    sse({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    b"data: [DONE]\n\n",
]
MESSAGES = [
    sse({"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 10}}}),
    sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
    sse({"type": "message_stop"}),
]


@pytest.mark.parametrize(
    ("upstream", "client", "events"),
    [
        ("chat", "responses", CHAT),
        ("chat", "messages", CHAT),
        ("messages", "responses", MESSAGES),
        ("messages", "chat", MESSAGES),
        ("chat", "chat", CHAT),
        ("messages", "messages", MESSAGES),
    ],
)
def test_a_turn_that_ends_without_a_word_is_one(
    upstream: Dialect, client: Dialect, events: list[bytes]
) -> None:
    """As some end, after a tool's result: a client that is told of a failure would ask again, and pay."""
    with StubProvider() as stub:
        section = UpstreamSection(name="only", base_url=stub.url, api=(upstream,))
        stub.api = (upstream,)
        stub.answer = lambda asked: Raw(tuple(events), "text/event-stream")
        with house([section]) as home:
            answer = httpx.post(home.url + PATHS[client], json=body_of(client, stream=True))
            (draft,) = home.records.wait()
    assert (answer.status_code, draft.status) == (200, "complete")
    last = {"chat": "[DONE]", "messages": "message_stop", "responses": "response.completed"}[client]
    assert last in answer.text.strip().splitlines()[-1]
    if client == "responses":
        assert json.loads(answer.text.strip().splitlines()[-1][6:])["response"]["output"] == []
