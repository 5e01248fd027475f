"""Injecting a prefix: the parsed body is the original with the prefix in front, and no other byte changed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.codec import codec_for
from daemon.wire.prefix import Prefix
from reef.errors import Invalid
from reef.runtime import DIALECTS, Dialect

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
SAID = TEXTS.filter(bool)
PREFIXES = st.builds(Prefix, system=TEXTS, turns=st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple))
OTHER = st.fixed_dictionaries(
    {"temperature": st.just(0.25)}, optional={"x": st.lists(TEXTS), "metadata": st.just({"messages": []})}
)
STYLES = st.sampled_from([{}, {"indent": 2}, {"ensure_ascii": False}, {"separators": (",", ":")}])


def parts(kind: str) -> st.SearchStrategy[Any]:
    return TEXTS | st.lists(TEXTS.map(lambda text: {"type": kind, "text": text}), max_size=2)


def turns(kind: str = "text") -> st.SearchStrategy[list[Any]]:
    turn = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": parts(kind)})
    return st.lists(turn, max_size=4)


def examples(prefix: Prefix) -> list[Any]:
    return [
        {"role": role, "content": text}
        for turn in prefix.turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]


def in_front(prefix: Prefix, own: Any, end: str = "") -> Any:
    """The prefix's system text in front of a system content of strings or parts."""
    if not prefix.system:
        return own
    if isinstance(own, list):
        return [{"type": "text", "text": prefix.system + (end if own else "")}, *own]
    return prefix.system + (f"\n\n{own}" if own else "")


def inject(dialect: Dialect, body: dict[str, Any], prefix: Prefix, style: dict[str, Any]) -> Any:
    raw = json.dumps(body, **style).encode()
    injected = codec_for(dialect).inject(raw, prefix)
    if not prefix:
        assert injected == raw
    if None not in body.values():
        rest = iter(injected)
        assert all(byte in rest for byte in raw), "every byte of the original is still there, in its order"
    return json.loads(injected)


@given(OTHER, turns(), PREFIXES, STYLES)
def test_chat_without_a_system_message(other: Any, own: list[Any], prefix: Prefix, style: Any) -> None:
    system = [{"role": "system", "content": prefix.system}] if prefix.system else []
    body = other | {"messages": own}
    assert inject("chat", body, prefix, style) == other | {"messages": system + examples(prefix) + own}


@given(OTHER, parts("text"), st.sampled_from(["system", "developer"]), turns(), PREFIXES, STYLES)
def test_chat_keeps_one_system_message_first(
    other: Any, content: Any, role: str, own: list[Any], prefix: Prefix, style: Any
) -> None:
    second = {"role": "system", "content": "second"}
    body = other | {"messages": [{"role": role, "content": content}, second, *own]}
    first = {"role": role, "content": in_front(prefix, content, "\n\n")}
    expected = [first, second, *examples(prefix), *own]
    assert inject("chat", body, prefix, style) == other | {"messages": expected}


@given(OTHER, st.none() | parts("text"), turns(), PREFIXES, STYLES)
def test_messages(other: Any, system: Any, own: list[Any], prefix: Prefix, style: Any) -> None:
    body = other | {"messages": own} | ({} if system is None else {"system": system})
    expected = body | {"messages": examples(prefix) + own}
    if prefix.system or system is not None:
        expected["system"] = in_front(prefix, system)
    assert inject("messages", body, prefix, style) == expected


@given(OTHER, st.none() | TEXTS, TEXTS | turns("input_text"), PREFIXES, STYLES)
def test_responses(other: Any, instructions: str | None, own: Any, prefix: Prefix, style: Any) -> None:
    body = other | {"input": own, "instructions": instructions}
    expected = body | {"instructions": in_front(prefix, instructions)}
    if prefix.turns:
        said = [{"role": "user", "content": own}] if isinstance(own, str) else own
        expected["input"] = examples(prefix) + said
    assert inject("responses", body, prefix, style) == expected


def test_responses_that_continue_get_no_examples_again() -> None:
    body = {"input": "more", "previous_response_id": "resp_1"}
    prefix = Prefix("Be brief.", (("a", "b"),))
    assert inject("responses", body, prefix, {}) == body | {"instructions": "Be brief."}


def test_a_system_message_without_text_gets_one_in_front() -> None:
    body = {"messages": [{"role": "system", "content": None}, {"role": "user", "content": "hi"}]}
    changed = inject("chat", body, Prefix("Be brief.", (("a", "b"),)), {})
    assert [message["role"] for message in changed["messages"]] == [
        "system",
        "system",
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("own", ["", ',"messages":7,"input":7', ',"system":null,"instructions":null'])
def test_a_body_without_messages_still_goes_to_the_provider(dialect: Dialect, own: str) -> None:
    body = f'{{"model":"m"{own}}}'.encode()
    json.loads(codec_for(dialect).inject(body, Prefix("Be brief.", (("a", "b"),))))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_is_filled_in_only_where_none_is_named(dialect: Dialect) -> None:
    fill = codec_for(dialect).fill_model
    assert fill(b'{ "a":1 }', "m") == b'{"model":"m", "a":1 }'
    assert fill(b"{}", "m") == b'{"model":"m"}'
    assert fill(b'{"model": null}', "m") == b'{"model": "m"}'
    assert fill(b'{"model": "own"}', "m") == b'{"model": "own"}'


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff{}", b"[" * 100_000])
def test_what_is_no_object_is_invalid(dialect: Dialect, body: bytes) -> None:
    with pytest.raises(Invalid, match="request body"):
        codec_for(dialect).facts(body)
