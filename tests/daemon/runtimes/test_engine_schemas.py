"""The engine contract, third part: of a JSON schema every word is held, or listed, or the request is refused.

The tiny model says random bytes: what holds in its answers, the grammar holds.
"""

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.runtimes.engine.kinds import KINDS
from daemon.runtimes.engine.schemas import _grammars, gbnf, guided
from daemon.runtimes.engine.shaping import shaping
from daemon.wire.codec import codec_for
from reef.errors import Invalid
from reef.runtime import DIALECTS, Dialect, ProviderRequest
from tests.daemon.runtimes.engines import Make, request_of, said, started
from tests.daemon.runtimes.test_engine_shapes import calls_of
from tests.tiny_gguf import TEMPLATE, write

WORDS = ("hi", "so")
"""Each makes another answer."""
xllamacpp = pytest.mark.parametrize("make", ["xllamacpp"], indirect=True)
"""The converter of the other engine reads less."""
FORMATS = {
    "chat": "response_format.json_schema.schema",
    "messages": "output_config.format.schema",
    "responses": "text.format.schema",
}
TOOLS = {
    "chat": "tools[].function.parameters",
    "messages": "tools[].input_schema",
    "responses": "tools[].parameters",
}
both = pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
every = pytest.mark.parametrize("dialect", DIALECTS)


def of(**properties: Any) -> dict[str, Any]:
    """An object that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


CLOSED = of(a={"type": "integer"}) | {"additionalProperties": False}
HELD = of(
    whole={"type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 5},
    phone={"type": "string", "pattern": r"^\d{3}[\s-]\d{4}$"},
    code={"type": "string", "pattern": r"^\w+$", "minLength": 2, "maxLength": 4},
    found={"type": "string", "pattern": r"\d", "maxLength": 6},
    address={"type": "string", "format": "ipv4"},
    kind={"type": "string", "enum": ["a", 1]},
    narrowed={"$ref": "#/$defs/Small", "maximum": 3},
    both={"allOf": [CLOSED, {"properties": {"a": {"minimum": 1, "maximum": 3}}}]},
    pair={"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": False, "minItems": 2},
) | {"$defs": {"Small": {"type": "integer", "minimum": 1, "maximum": 9}}}
LOST = of(
    tags={"type": "array", "items": {"enum": [1, 2]}, "maxItems": 3, "uniqueItems": True},
    site={"type": "string", "format": "uri", "maxLength": 5},
    ahead={"type": "string", "pattern": "^(?=a)b$", "maxLength": 5},
    other={"enum": [1, 2], "not": {"const": 1}},
    one={"oneOf": [{"type": "integer", "minimum": 1, "maximum": 5}, {"type": "integer", "enum": [5]}]},
)
LEFT_OUT = [
    f"properties.{path}"
    for path in (
        "tags.uniqueItems",
        "site.format",
        "ahead.pattern",
        "other.not",
        "one.oneOf",
    )
]


def holds(value: Any) -> None:
    assert set(value) == set(HELD["properties"])
    assert value["whole"] in range(0, 101, 5)
    assert re.fullmatch(r"\d{3}[\s-]\d{4}", value["phone"])
    assert re.fullmatch(r"\w{2,4}", value["code"])
    assert re.search(r"\d", value["found"])
    assert all(0 <= int(part) <= 255 for part in value["address"].split("."))
    assert value["kind"] == "a"
    assert value["narrowed"] in (1, 2, 3)
    assert value["both"]["a"] in (1, 2, 3)
    assert value["pair"] == [1, 2]


def with_format(dialect: Dialect, schema: Any) -> dict[str, Any]:
    if dialect == "chat":
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    shape = {"type": "json_schema", "schema": schema}
    if dialect == "messages":
        return {"output_config": {"format": shape}}
    return {"text": {"format": shape | {"name": "x"}}}


def with_tool(dialect: Dialect, schema: Any) -> dict[str, Any]:
    if dialect == "messages":
        return {"tools": [{"name": "t", "input_schema": schema}], "tool_choice": {"type": "any"}}
    function = {"name": "t", "parameters": schema}
    tool = (
        {"type": "function", "function": function} if dialect == "chat" else {"type": "function", **function}
    )
    return {"tools": [tool], "tool_choice": "required"}


def request(dialect: Dialect, say: str = "hi", *, stream: bool = False, **more: Any) -> ProviderRequest:
    bound = "max_output_tokens" if dialect == "responses" else "max_tokens"
    return request_of(dialect, say, stream=stream, **{bound: 600} | more)


def answers(make: Make, dialect: Dialect, *, stream: bool, **more: Any) -> list[tuple[Any, list[str]]]:
    """What is said and left out, some times over."""

    async def scene() -> list[tuple[Any, list[str]]]:
        found = []
        async with started(make(context=4096)) as engine:
            for say in WORDS:
                sent = request(dialect, say, stream=stream, **more)
                status, body = await said(engine, sent)
                assert status == 200, body
                found.append((codec_for(dialect).parse(body, stream=stream), sent.dropped))
        return found

    return asyncio.run(scene())


@xllamacpp
@both
@every
def test_what_a_grammar_can_hold_is_held(make: Make, dialect: Dialect, stream: bool) -> None:
    for parsed, dropped in answers(make, dialect, stream=stream, **with_format(dialect, HELD)):
        holds(json.loads(parsed.text))
        assert not [path for path in dropped if path.startswith(FORMATS[dialect])]


@xllamacpp
@both
@every
def test_a_demanded_call_holds_as_much(make: Make, dialect: Dialect, stream: bool) -> None:
    for parsed, dropped in answers(make, dialect, stream=stream, **with_tool(dialect, HELD)):
        ((_, arguments),) = calls_of(dialect, parsed.response)
        holds(arguments)
        assert not [path for path in dropped if path.startswith(TOOLS[dialect])]


@xllamacpp
@every
def test_what_none_can_hold_is_listed(make: Make, dialect: Dialect) -> None:
    for parsed, dropped in answers(make, dialect, stream=False, **with_format(dialect, LOST)):
        assert set(json.loads(parsed.text)) == set(LOST["properties"])
        assert sorted(dropped) == sorted(f"{FORMATS[dialect]}.{path}" for path in LEFT_OUT)
    for parsed, dropped in answers(make, dialect, stream=False, **with_tool(dialect, LOST)):
        assert calls_of(dialect, parsed.response)
        assert sorted(dropped) == sorted(f"{TOOLS[dialect]}.{path}" for path in LEFT_OUT)


@xllamacpp
@pytest.mark.parametrize("seed", range(6))
def test_numbers_keep_their_bounds(make: Make, seed: int) -> None:
    bound = {"type": "number", "exclusiveMinimum": 3, "maximum": 7.5}
    half = {"type": "number", "minimum": 0, "maximum": 2, "multipleOf": 0.5}
    more = with_format("chat", of(bound=bound, half=half)) | {"temperature": 1, "seed": seed}
    for parsed, _ in answers(make, "chat", stream=False, **more):
        value = json.loads(parsed.text)
        assert 3 < value["bound"] <= 7.5
        assert value["half"] in (0, 0.5, 1, 1.5, 2)


def test_a_count_that_no_grammar_can_reach_is_listed() -> None:
    many = {"type": "array", "items": {"enum": [1]}, "maxItems": 10**9}
    assert guided(of(a=many))[1] == ("properties.a.maxItems",)


@every
@pytest.mark.parametrize(
    "schema",
    [
        of(a={"$ref": "#/nowhere"}),
        of(a={"type": "integer", "minimum": 5, "maximum": 3}),
        of(a={"type": "text"}),
        {"$ref": "#"},
        of(a={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        of(a={"$ref": "#/$defs/N"}) | {"$defs": {"N": of(n={"$ref": "#/$defs/N"})}},
        of(a={"type": "array", "minItems": 1, "items": {"$ref": "#"}}),
        of(a={"anyOf": [False, {"$ref": "#"}]}),
    ],
)
def test_a_shape_that_no_answer_can_have_is_refused(schema: Any, dialect: Dialect) -> None:
    for more in (with_format(dialect, schema), with_tool(dialect, schema)):
        with pytest.raises(Invalid, match="no grammar can be made of the JSON schema"):
            shaping(request(dialect, **more), KINDS["xllamacpp"])


@xllamacpp
def test_beside_a_shape_tools_may_still_be_called(make: Make) -> None:
    more = with_format("chat", of(a={"enum": [1]})) | with_tool("chat", HELD) | {"tool_choice": "auto"}
    for parsed, _ in answers(make, "chat", stream=False, **more):
        if calls := calls_of("chat", parsed.response):
            holds(calls[0][1])
        else:
            assert json.loads(parsed.text) == {"a": 1}


@xllamacpp
@both
def test_a_template_that_begins_with_a_thought_is_no_harm(
    make: Make, stream: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    thinking = (
        "{% if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}"
    )
    template = TEMPLATE.replace("{{ message['content'] }}", thinking + "{{ message['content'] }}")
    monkeypatch.setattr("tests.tiny_gguf.TEMPLATE", template.replace("assistant\n", "assistant\n<think>\n"))
    model = write(tmp_path / "thinking.gguf")
    more = with_format("chat", of(a={"enum": [1]}))
    for parsed, _ in answers(lambda **options: make(model, **options), "chat", stream=stream, **more):
        assert json.loads(parsed.text) == {"a": 1}


@xllamacpp
def test_an_answer_begins_anew_after_the_assistants_turn(make: Make) -> None:
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "I say"}]
    more = with_format("chat", of(a={"enum": [1]}))
    for parsed, _ in answers(make, "chat", stream=False, messages=turns, **more):
        assert json.loads(parsed.text) == {"a": 1}


def test_a_shape_that_may_come_to_an_end_is_taken() -> None:
    tree = of(name={"type": "string"}) | {"$defs": {}}
    tree["properties"]["inner"] = {"type": "array", "items": {"$ref": "#"}}
    assert guided(tree)[1] == ()
    chain = {"$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}}
    assert guided(of(a={"$ref": "#/$defs/N"}) | chain)[1] == ()
    assert guided(of(a={"anyOf": [{"$ref": "#"}, {"type": "null"}]}))[1] == ()


@pytest.mark.parametrize(
    "wanted", ["json", {"type": "xml"}, {"type": "json_schema", "json_schema": {"schema": False}}]
)
def test_a_shape_that_is_none_is_refused(wanted: Any) -> None:
    with pytest.raises(Invalid, match="asks for no shape"):
        shaping(request("chat", response_format=wanted), KINDS["xllamacpp"])
    own = {"type": "json_schema", "schema": {"type": "object"}}
    assert shaping(request("chat", response_format=own), KINDS["xllamacpp"]) is None, "llama.cpp's own way"


def test_what_the_library_does_not_survive_is_listed_and_others_are_answered() -> None:
    """Some numbers end the process in which it is asked of them."""
    for number in (-(2**63), -(2**63) + 1):
        assert guided(of(a={"const": number}))[1] == ("properties.a.const",)
        assert guided(of(a={"const": number // 2})) == (
            of(a={"const": number // 2}) | {"additionalProperties": False},
            (),
        )


def test_a_child_that_was_ended_meanwhile_is_started_anew() -> None:
    """Nothing is refused for it."""
    grammar = "%llguidance {}\nstart: %json {}"
    assert _grammars.refusal(grammar) is None
    child = _grammars._child
    assert child is not None
    child.kill()
    child.wait()
    assert _grammars.refusal(grammar) is None
    assert _grammars.refusal("start: nonsense") is not None


def test_numbers_that_a_grammar_rounds_are_listed() -> None:
    lost = guided(of(a={"const": 2**63}, b={"enum": [1, -(2**63) - 1]}, c={"const": 2**63 - 1}))[1]
    assert lost == ("properties.a.const", "properties.b.enum")


@every
def test_a_tool_that_says_nothing_of_its_arguments_has_none(dialect: Dialect) -> None:
    asked = with_tool(dialect, {})
    for tool in asked["tools"]:
        for place in (tool, tool.get("function", {})):
            for key in ("parameters", "input_schema"):
                place.pop(key, None)
    shape = shaping(request(dialect, **asked), KINDS["xllamacpp"])
    assert shape is not None
    assert '"properties":{},"additionalProperties":false' in json.loads(shape.request.body)["grammar"]


def test_what_says_nothing_is_not_missed() -> None:
    idle = of(a={"type": "array", "items": {"type": "integer"}, "uniqueItems": False, "minItems": 0})
    idle |= {"additionalProperties": False, "unevaluatedProperties": False}
    assert guided(idle)[1] == ()


@every
def test_numbers_keep_their_digits_and_half_a_pair_is_no_harm(dialect: Dialect) -> None:
    shape = shaping(
        request(dialect, **with_format(dialect, of(a={"enum": [1], "default": 10**23 + 1}))),
        KINDS["xllamacpp"],
    )
    assert shape is not None
    assert str(10**23 + 1) in json.loads(shape.request.body)["grammar"]
    asked = with_format(dialect, of(a={"description": "\ud83d", "enum": [1]}))
    assert shaping(request(dialect, **asked), KINDS["xllamacpp"]) is not None


def test_what_the_other_converter_does_not_read_is_listed() -> None:
    dated = {"type": "string", "format": "date"}
    held, lost = gbnf(of(n={"type": "number", "minimum": 1}, p={"pattern": r"^\d$"}, d=dated))
    assert lost == ("properties.n.minimum", "properties.p.pattern")
    assert held == of(n={"type": "number"}, p={}, d=dated)
    assert gbnf(of(p={"pattern": "^[a-z]+$"})) == (of(p={"pattern": "^[a-z]+$"}), ())


words = st.sampled_from(
    ["type", "minimum", "uniqueItems", "not", "oneOf", "format", "pattern", "x-more", "title"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["string", "integer", "uri", "^a$", "("]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
schemas = st.dictionaries(words, values, max_size=4)


@settings(max_examples=60, deadline=None)
@given(schemas | st.builds(lambda inner: of(a=inner), schemas))
def test_any_schema_is_taken_or_refused(schema: Any) -> None:
    try:
        held, lost = guided(schema)
    except Invalid:
        return
    assert not held or guided(held) == (held, ()), "what is held is held as it is"
    assert all(path.rpartition(".")[2] in json.dumps(schema) for path in lost)
