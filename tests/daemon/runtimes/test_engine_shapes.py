"""The engine contract, second part: an answer has the shape that was asked for, whatever the model is like.

The tiny model says random bytes for as long as it may. What it says in shape is the grammar's doing.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from daemon.runtimes.engine.kinds import KINDS
from daemon.runtimes.engine.shaping import shaping
from daemon.wire.codec import codec_for
from reef.errors import Invalid
from reef.runtime import DIALECTS, Dialect, Parsed
from tests.daemon.runtimes.engines import ENGINES, Make, request_of, said, started

CITY = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Paris", "Rome"]},
        "days": {"enum": [1, 2, 3]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
PLACE = {  # refers to a part of itself, as generated schemas do
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/Place"}},
    "required": ["place"],
    "additionalProperties": False,
    "$defs": {"Place": {"enum": ["north", "south"]}},
}
BOUND = 200
"""Tokens that the longest answer in shape is sure to fit in."""


def check(arguments: Any, name: str = "weather") -> None:
    if name == "weather":
        assert set(arguments) == {"city", "days"}
        assert arguments["city"] in ("Paris", "Rome")
        assert arguments["days"] in (1, 2, 3)
    else:
        assert arguments in ({"place": "north"}, {"place": "south"})


def with_format(dialect: Dialect) -> dict[str, Any]:
    named = {"name": "city", "schema": CITY}
    if dialect == "chat":
        return {"max_tokens": BOUND, "response_format": {"type": "json_schema", "json_schema": named}}
    if dialect == "messages":
        return {"max_tokens": BOUND, "output_config": {"format": {"type": "json_schema", "schema": CITY}}}
    return {"max_output_tokens": BOUND, "text": {"format": {"type": "json_schema", **named}}}


def with_tools(dialect: Dialect, choice: str) -> dict[str, Any]:
    """Two tools; `choice` is `required`, `auto` or the name of one."""
    tools = [("weather", CITY), ("move", PLACE)]
    if dialect == "messages":
        word = {"required": {"type": "any"}, "auto": {"type": "auto"}}
        chosen: Any = word.get(choice, {"type": "tool", "name": choice})
        offered = [{"name": name, "description": name, "input_schema": schema} for name, schema in tools]
        return {"max_tokens": BOUND, "tools": offered, "tool_choice": chosen}
    functions = [{"name": name, "description": name, "parameters": schema} for name, schema in tools]
    if dialect == "chat":
        chosen = (
            choice if choice in ("required", "auto") else {"type": "function", "function": {"name": choice}}
        )
        offered = [{"type": "function", "function": function} for function in functions]
        return {"max_tokens": BOUND, "tools": offered, "tool_choice": chosen}
    chosen = choice if choice in ("required", "auto") else {"type": "function", "name": choice}
    offered = [{"type": "function", **function} for function in functions]
    return {"max_output_tokens": BOUND, "tools": offered, "tool_choice": chosen}


def calls_of(dialect: Dialect, response: Any) -> list[tuple[str, Any]]:
    """The calls of an answer, names and arguments."""
    if dialect == "chat":
        found = response["choices"][0]["message"].get("tool_calls") or []
        return [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in found]
    if dialect == "messages":
        return [(one["name"], one["input"]) for one in response["content"] if one["type"] == "tool_use"]
    found = [one for one in response["output"] if one["type"] == "function_call"]
    return [(one["name"], json.loads(one["arguments"])) for one in found]


def asked(make: Make, dialect: Dialect, *, stream: bool, **more: Any) -> Parsed:
    async def scene() -> tuple[int, bytes]:
        async with started(make()) as engine:
            return await said(engine, request_of(dialect, stream=stream, **more))

    status, body = asyncio.run(scene())
    assert status == 200, body
    parsed = codec_for(dialect).parse(body, stream=stream)
    assert parsed.response is not None, body
    return parsed


both = pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
every = pytest.mark.parametrize("dialect", DIALECTS)


@both
@every
def test_a_schema_holds(make: Make, dialect: Dialect, stream: bool) -> None:
    check(json.loads(asked(make, dialect, stream=stream, **with_format(dialect)).text))


@both
@every
def test_a_named_tool_is_called(make: Make, dialect: Dialect, stream: bool) -> None:
    parsed = asked(make, dialect, stream=stream, **with_tools(dialect, "move"))
    ((name, arguments),) = calls_of(dialect, parsed.response)
    assert name == "move"
    check(arguments, name)
    assert parsed.aliases


@both
@every
def test_some_tool_is_called(make: Make, dialect: Dialect, stream: bool) -> None:
    parsed = asked(make, dialect, stream=stream, **with_tools(dialect, "required"))
    ((name, arguments),) = calls_of(dialect, parsed.response)
    check(arguments, name)
    assert parsed.finish == {"chat": "tool_calls", "messages": "tool_use", "responses": "completed"}[dialect]


def text(said: str) -> Any:
    return said


def parts(said: str) -> Any:
    return [{"type": "text", "text": said}]


def with_earlier_calls(content: Callable[[str], Any]) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "move", "arguments": '{"place": "north"}'}}
    messages = [
        {"role": "system", "content": content("Be brief.")},
        {"role": "user", "content": content("Go north.")},
        {"role": "assistant", "content": content("I go."), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": content("done")},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    return {"messages": messages, **with_tools("chat", "required")}


strings_and_parts = pytest.mark.parametrize("content", [text, parts])


@strings_and_parts
def test_a_conversation_with_earlier_calls_goes_on(make: Make, content: Callable[[str], Any]) -> None:
    parsed = asked(make, "chat", stream=False, **with_earlier_calls(content))
    ((name, arguments),) = calls_of("chat", parsed.response)
    check(arguments, name)


@strings_and_parts
def test_the_model_reads_every_text_of_an_earlier_call(content: Callable[[str], Any]) -> None:
    shape = shaping(request_of("chat", **with_earlier_calls(content)), KINDS["xllamacpp"])
    assert shape is not None
    system, user, first, result, second, *_ = json.loads(shape.request.body)["messages"]
    assert system["content"].startswith("Be brief.\n\nYou have tools.")
    assert user["content"] == content("Go north.")
    call = '{"name":"move","arguments":{"place":"north"}}'
    assert first == {"role": "assistant", "content": f"I go.\n{call}"}
    assert result == {"role": "user", "content": "The tool's result:\ndone"}
    assert second == {"role": "assistant", "content": call}


def test_a_call_that_is_cut_off_is_no_call(make: Make) -> None:
    parsed = asked(make, "chat", stream=False, **with_tools("chat", "required") | {"max_tokens": 3})
    assert calls_of("chat", parsed.response) == []
    assert parsed.finish == "length"


def test_a_choice_of_a_tool_that_is_not_there_is_refused(make: Make) -> None:
    async def scene() -> None:
        async with started(make()) as engine:
            with pytest.raises(Invalid, match="`fly`, which is none of the tools"):
                await engine.send(request_of("chat", **with_tools("chat", "fly")))

    asyncio.run(scene())


@pytest.mark.parametrize("letter", ["a", "n"])
def test_by_grammar_a_tool_may_be_called_or_not(
    make: Make, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the object begins with decides: the model is made to prefer a letter, of `answer` or of `name`."""
    for kind in ENGINES:
        monkeypatch.setitem(KINDS, kind, replace(KINDS[kind], calls="all"))
    preferred = {str(ord(letter) + 3): 100}
    offered = with_format("chat") | with_tools("chat", "auto")
    parsed = asked(make, "chat", stream=False, logit_bias=preferred, **offered)
    calls = calls_of("chat", parsed.response)
    if letter == "n":
        ((name, arguments),) = calls
        check(arguments, name)
    else:
        assert calls == []
        check(json.loads(parsed.text))
