"""Reading values of a request that may be anything, for the dialects' modules."""

from typing import Any, Literal, cast

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.neutral import FREE_FORM, Format, Image, Part, Role, Text, Tool, ToolChoice, Usage
from daemon.wire.values import Json, dump, integer, load_object, mapping, mappings, string
from reef.errors import Invalid


def check_lists(payload: Json, *keys: str) -> None:
    """Raises Invalid where one of these is there and no list of objects: a provider would refuse that, and
    a bridge that left it out would have something else answered."""
    for key in keys:
        value = payload.get(key)
        if value is not None and (not isinstance(value, list) or len(mappings(value)) != len(value)):
            raise Invalid(f"`{key}` is no list of objects", hint="see the provider's documents")


def check_numbers(payload: Json, *keys: str) -> None:
    """Raises Invalid where one of these is there and no number."""
    for key in keys:
        if payload.get(key) is not None and number(payload[key]) is None:
            raise Invalid(f"`{key}` is no number", hint="see the provider's documents")


def check_truths(payload: Json, *keys: str) -> None:
    """Raises Invalid where one of these is there and neither true nor false."""
    for key in keys:
        if not isinstance(payload.get(key), bool | None):
            raise Invalid(f"`{key}` is neither true nor false", hint="see the provider's documents")


def check_said(payload: Json, key: str) -> None:
    """Raises Invalid where an element of the list under `key` has a content that says nothing to anybody."""
    for at, item in enumerate(mappings(payload.get(key))):
        if not isinstance(item.get("content"), str | list | None):
            raise Invalid(
                f"`{key}[{at}].content` is neither text nor a list", hint="see the provider's documents"
            )


def bound(payload: Json, key: str, dropped: Dropped) -> int | None:
    """A whole number above 0 that bounds something; some write -1 for none."""
    value = payload.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    found = integer(value) or None
    if found is None and value is not None:
        dropped.note(key)
    return found


def number(value: Any) -> float | None:
    """A number that is none of JSON's booleans."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def words(value: Any) -> tuple[str, ...]:
    """The non-empty strings of a list, or of one string."""
    listed = value if isinstance(value, list) else [value]
    return tuple(item for item in listed if isinstance(item, str) and item)


def texts(value: Any) -> tuple[Text, ...]:
    """A string that says something, as a part."""
    return (Text(value),) if isinstance(value, str) and value else ()


def usage_of(value: Any, sent: str, made: str) -> Usage:
    """What OpenAI's dialects report alike: the tokens that were `sent` and `made`, by their names there, and
    each one's details."""
    usage = mapping(value)
    return Usage(
        integer(usage.get(sent)),
        integer(usage.get(made)),
        integer(mapping(usage.get(f"{sent}_details")).get("cached_tokens")),
        None,
        integer(mapping(usage.get(f"{made}_details")).get("reasoning_tokens")),
    )


def role_of(message: Json, dropped: Dropped, at: str) -> Role:
    """One that nobody else has becomes the user's (and is noted)."""
    role = message.get("role")
    if role == "developer":
        return "system"
    if role in ("system", "user", "assistant"):
        return cast(Role, role)
    if role is not None:
        dropped.note(f"{at}role")
    return "user"


def arguments_of(value: Any) -> str:
    """A call's arguments as text; models leave them out where there are none."""
    if isinstance(value, str):
        return value if value.strip() else "{}"
    return dump(value).decode() if value is not None else "{}"


def wrapped(text: Any) -> str:
    """The text for a free-form tool, as an object."""
    return dump({"input": text if isinstance(text, str) else ""}).decode()


def unwrapped(arguments: str) -> str:
    """The text out of the object; a model that sent something else is taken at its word."""
    value = (load_object(arguments.encode(errors="replace")) or {}).get("input")
    return value if isinstance(value, str) else arguments


def tool(value: Json, schema_key: str, dropped: Dropped, at: str) -> Tool | None:
    """A tool that takes an object; None (and noted) where it has no name."""
    name = string(value.get("name"))
    if name is None:
        dropped.note(at.rstrip("."))
        return None
    dropped.rest(value, {"type", "name", "description", "strict", schema_key}, at)
    strict = value.get("strict")
    return Tool(
        name,
        string(value.get("description")) or "",
        mapping(value.get(schema_key)),
        strict if isinstance(strict, bool) else None,
    )


def free_form(value: Json, dropped: Dropped, at: str) -> Tool | None:
    """A tool that takes text. The grammar it wants becomes a part of its description."""
    name = string(value.get("name"))
    if name is None:
        dropped.note(at.rstrip("."))
        return None
    dropped.rest(value, {"type", "name", "description", "format"}, at)
    description = string(value.get("description")) or ""
    grammar = mapping(value.get("format"))
    grammar = mapping(grammar.get("grammar")) or grammar
    if definition := string(grammar.get("definition")):
        syntax = string(grammar.get("syntax")) or ""
        description = f"{description}\n\n`input` has to follow this {syntax} grammar:\n{definition}".strip()
    return Tool(name, description, FREE_FORM, custom=True)


def openai_choice(value: Any, dropped: Dropped) -> ToolChoice | None:
    """`tool_choice` as OpenAI's two dialects write it."""
    if isinstance(value, str):
        return ToolChoice(cast(Any, value)) if value in ("auto", "none", "required") else None
    chosen = mapping(value)
    if (kind := chosen.get("type")) == "allowed_tools":
        dropped.note("tool_choice.tools")
        mode = mapping(chosen.get("allowed_tools", chosen)).get("mode")
        return ToolChoice("required" if mode == "required" else "auto")
    name = string(mapping(chosen.get(str(kind), chosen)).get("name"))
    if name is None and chosen:
        dropped.note("tool_choice")
    return ToolChoice("tool", name) if name else None


def openai_format(value: Json, inner: Json) -> Format | None:
    """A wanted shape; `inner` is where name and schema stand."""
    kind: Literal["json_schema", "json_object"] | None = value.get("type")
    if kind == "json_object":
        return Format(None)
    if kind != "json_schema" or not isinstance(inner.get("schema"), dict):
        return None
    strict = inner.get("strict")
    name = string(inner.get("name")) or "answer"
    return Format(inner["schema"], name, strict if isinstance(strict, bool) else None)


def split_result(parts: tuple[Text | Image, ...]) -> tuple[str, list[Image]]:
    """A tool's result as one text, and its images."""
    said: list[Part] = [part for part in parts if isinstance(part, Text)]
    text = "\n\n".join(part.text for part in said if isinstance(part, Text))
    return text, [part for part in parts if isinstance(part, Image)]
