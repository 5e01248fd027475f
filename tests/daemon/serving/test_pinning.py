"""A release never changes in the middle of a conversation, and a new conversation gets the newest."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.serving.conversation import KEPT, KEPT_CHARS, KEPT_FROM_CHARS, Examples, Said
from daemon.wire.codec import codec_for
from daemon.wire.prefix import Prefix
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS
from tests.daemon.serving.house import House, house
from tests.stub_provider import Raw, Reply, StubProvider, ToolCall


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider() as started:
        yield started


@pytest.fixture
def home(stub: StubProvider) -> Iterator[House]:
    stub.asked.clear()
    with house(stub.url, prefix=Prefix("release one")) as built:
        yield built


def publish(home: House) -> None:
    home.scenarios.release = "r2"
    home.scenarios.prefix = Prefix("release two")


def said(dialect: Dialect, response: dict[str, Any]) -> list[Any]:
    """An answer as a client sends it back, with the result of its tool calls."""
    if dialect == "chat":
        message = response["choices"][0]["message"]
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "r"}
            for call in message.get("tool_calls", [])
        ]
        return [message, *results]
    if dialect == "responses":
        return [
            *response["output"],
            {"type": "function_call_output", "call_id": "call_1", "output": "r"},
        ]
    results = [{"type": "tool_result", "tool_use_id": "call_1", "content": "r"}]
    return [{"role": "assistant", "content": response["content"]}, {"role": "user", "content": results}]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_keeps_its_release(
    dialect: Dialect, stream: bool, home: House, stub: StubProvider
) -> None:
    stub.answer = lambda asked: Reply("I look. ", (ToolCall("look", {}),), thinking="hm")
    history: list[Any] = [{"role": "user", "content": f"hi {dialect} {stream}"}]
    key = "input" if dialect == "responses" else "messages"

    def turn() -> None:
        body = {"model": "m", "max_tokens": 5, key: history, "stream": stream}
        raw = httpx.post(home.url + PATHS[dialect], json=body).content
        response = codec_for(dialect).parse(raw, stream=stream).response
        assert response is not None
        history.extend(json.loads(json.dumps(said(dialect, response))))

    turn()
    publish(home)
    turn()
    turn()
    assert [asked.system for asked in stub.asked] == ["release one"] * 3
    assert [draft.release_id for draft in home.records.drafts] == ["r1"] * 3
    assert len({draft.conversation for draft in home.records.drafts}) == 1
    del history[1:]
    turn()
    assert stub.asked[-1].system == "release two"


def test_a_session_keeps_its_release(home: House, stub: StubProvider) -> None:
    stub.answer = lambda asked: "ok"
    body = {"messages": [{"role": "user", "content": "hi"}]}

    def ask(session: str) -> str:
        httpx.post(f"{home.url}/v1/chat/completions", json=body, headers={"x-session-id": session})
        return stub.asked[-1].system

    assert ask("a") == "release one"
    publish(home)
    assert [ask("a"), ask("b")] == ["release one", "release two"]
    assert home.records.drafts[0].conversation == "s:a"


def test_the_same_examples_in_each_request_pin_nothing(home: House, stub: StubProvider) -> None:
    stub.answer = lambda asked: f"echo: {asked.user}"
    shots = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]

    def ask(*more: dict[str, str]) -> str:
        httpx.post(f"{home.url}/v1/chat/completions", json={"messages": [*shots, *more]})
        return stub.asked[-1].system

    first = {"role": "user", "content": "2+2"}
    assert ask(first) == "release one"
    publish(home)
    assert ask({"role": "user", "content": "3+3"}) == "release two"
    answered = {"role": "assistant", "content": "echo: 2+2"}
    assert ask(first, answered, {"role": "user", "content": "why?"}) == "release one"


def test_without_injection_nothing_is_looked_up(stub: StubProvider) -> None:
    stub.answer = lambda asked: "ok"
    with house(stub.url) as plain:
        httpx.post(f"{plain.url}/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]})
        assert plain.records.drafts[0].conversation is None


def test_keys_see_what_was_said_only() -> None:
    user = {"role": "user", "content": "hi"}
    answer = {"role": "assistant", "content": "ho"}
    assert list(Said([user]).history()) == []
    assert list(Said([{"role": "system", "content": "today"}, user, answer]).history()) == [
        Said([user]).answered(answer | {"content": " ho\n"}),
    ]
    assert len(list(Said([user, answer, user, answer]).history())) == 2
    called = answer | {"tool_calls": [{"id": "c1"}]}
    assert Said([user]).answered(called) != Said([user]).answered(answer)


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "tool", "system"]),
            "content": st.sampled_from(["", "hi", "é" * KEPT_FROM_CHARS, "x" * KEPT_FROM_CHARS]),
        },
        optional={"tool_calls": st.lists(st.fixed_dictionaries({"id": st.sampled_from(["a", "b"])}))},
    ),
    max_size=5,
)


@given(st.lists(MESSAGES, min_size=1, max_size=4), MESSAGES)
def test_what_was_digested_before_gets_the_same_keys(asked: list[Any], beginning: list[Any]) -> None:
    examples = Examples()
    answer = {"role": "assistant", "content": "ho"}
    for more in [*asked, *reversed(asked)]:
        alone, helped = (Said([*beginning, *more], known) for known in (None, examples))
        assert list(helped.history()) == list(alone.history())
        assert helped.answered(answer) == alone.answered(answer)
        assert list(helped.history()) == list(alone.history())


def test_examples_are_remembered_within_bounds() -> None:
    def shots(name: int, question: str = "?", chars: int = KEPT_FROM_CHARS) -> list[Any]:
        pair = [{"role": "user", "content": f"{name}"}, {"role": "assistant", "content": "x" * (chars // 2)}]
        return [*pair, *pair, {"role": "user", "content": question}]

    def known(examples: Examples, said: list[Any]) -> bool:
        return examples.find(said[:-1]) is not None

    examples = Examples()
    for name in range(KEPT + 1):
        list(Said(shots(name), examples).history())
    assert known(examples, shots(KEPT, "another"))
    assert not known(examples, shots(0))
    large = shots(-1, chars=KEPT_CHARS - 100)
    list(Said(large, examples).history())
    assert known(examples, large)
    assert not known(examples, shots(KEPT))
    for chars in (KEPT_CHARS + 100, KEPT_FROM_CHARS - 100):  # too large for it, and not worth it
        said = shots(-2, chars=chars)
        list(Said(said, examples).history())
        assert not known(examples, said)
    calling = shots(-3)
    calling[1]["tool_calls"] = [{"id": "1", "function": {"name": "f", "arguments": "x" * KEPT_CHARS}}]
    list(Said(calling, examples).history())
    assert not known(examples, calling)


def test_a_client_that_leaves_out_an_empty_content(home: House, stub: StubProvider) -> None:
    stub.answer = lambda asked: Reply("", (ToolCall("look", {}),))
    history: list[Any] = [{"role": "user", "content": "hi"}]
    first = httpx.post(f"{home.url}/v1/chat/completions", json={"messages": history}).json()
    publish(home)
    calls = first["choices"][0]["message"]["tool_calls"]
    history += [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "content": "r"}]
    httpx.post(f"{home.url}/v1/chat/completions", json={"messages": history})
    assert [asked.system for asked in stub.asked] == ["release one"] * 2


@pytest.mark.parametrize("odd", [1, "call_1", {"id": "call_1"}, ["call_1"], True])
def test_calls_that_are_none_cost_no_record(home: House, stub: StubProvider, odd: Any) -> None:
    message = {"role": "assistant", "content": "hi", "tool_calls": odd}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    stub.answer = lambda asked: Raw((json.dumps({"id": "x", "choices": [choice]}).encode(),))
    for messages in ([{"role": "user", "content": "hi"}], [message, {"role": "user", "content": "hi"}]):
        answer = httpx.post(f"{home.url}/v1/chat/completions", json={"model": "m", "messages": messages})
        assert answer.status_code == 200
    assert len(home.records.drafts) == 2


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "text"]), inner),
    max_leaves=5,
)
ODD_MESSAGES = st.lists(
    st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "name"]), ODD | st.just("user"))
)


@given(messages=ODD_MESSAGES)
def test_whatever_is_said_has_a_key(messages: list[dict[str, Any]]) -> None:
    read = codec_for("chat").facts(json.dumps({"messages": messages}).encode()).messages
    assert all(key.startswith("h:") for key in Said(read, Examples()).history())
    for message in read:
        assert Said(read).answered(message).startswith("h:")
