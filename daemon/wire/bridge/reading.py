"""Reading values of a request that may be anything, for the dialects' modules.

What says something and is not understood is noted. `checking` refuses most of it before; what was recorded
in the past stays readable.
"""

from typing import Any, Literal, cast

from daemon.wire.bridge.dropped import Dropped
from daemon.wire.bridge.neutral import (
    FREE_FORM,
    NO_ARGUMENTS,
    NOTHING,
    Format,
    Image,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Usage,
)
from daemon.wire.values import Json, dump, integer, load_object, mapping, string

_DATA = frozenset({"enum", "const", "default", "examples"})
"""Keywords of a schema under which values stand, and no schemas."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Those under which schemas stand by names that are anybody's."""
_BELONGS: dict[Role, tuple[type, ...]] = {
    "system": (Text,),
    "user": (Text, Image, ToolResult),
    "assistant": (Text, Thinking, ToolCall),
}


def bound(payload: Json, key: str, dropped: Dropped) -> int | None:
    """A whole number above 0 that bounds something; some write -1 for none."""
    value = _exact(payload.get(key))
    found = integer(value) or None
    if found is None and value is not None:
        dropped.note(key)
    return found


def whole(payload: Json, key: str, dropped: Dropped) -> int | None:
    """Any whole number."""
    value = _exact(payload.get(key))
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is not None:
        dropped.note(key)
    return None


def _exact(value: Any) -> Any:
    """A whole number that was written with a point, without it; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def number(value: Any) -> float | None:
    """A number that is none of JSON's booleans."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def text_at(value: Json, key: str, dropped: Dropped, at: str) -> str | None:
    """A string that says something."""
    found = value.get(key)
    if found is not None and not isinstance(found, str):
        dropped.note(f"{at}{key}")
    return string(found)


def truth_at(value: Json, key: str, dropped: Dropped, at: str) -> bool | None:
    found = value.get(key)
    if found is None or isinstance(found, bool):
        return found
    dropped.note(f"{at}{key}")
    return None


def object_at(value: Json, key: str, dropped: Dropped, at: str) -> Json:
    found = value.get(key)
    if found is not None and not isinstance(found, dict):
        dropped.note(f"{at}{key}")
    return mapping(found)


def words(payload: Json, key: str, dropped: Dropped) -> tuple[str, ...]:
    """The strings of a list, or the one string, under `key`; an empty one is none."""
    value = payload.get(key)
    listed = value if isinstance(value, list) else [value]
    if "" in listed:
        dropped.note(key)
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


def message_of(role: Role, parts: tuple[Part, ...], dropped: Dropped, at: str) -> Message:
    """A message without the parts that nobody says in this role (which are noted)."""
    _note_others(parts, _BELONGS[role], dropped, at)
    return Message(role, tuple(part for part in parts if isinstance(part, _BELONGS[role])))


def result_parts(parts: tuple[Part, ...], dropped: Dropped, at: str) -> tuple[Text | Image, ...]:
    """What of these a tool's result can hold; the rest is noted."""
    _note_others(parts, (Text, Image), dropped, at)
    return tuple(part for part in parts if isinstance(part, Text | Image))


def _note_others(parts: tuple[Part, ...], kinds: tuple[type, ...], dropped: Dropped, at: str) -> None:
    for part in parts:
        if not isinstance(part, kinds):
            dropped.note(f"{at}[{type(part).__name__.lower()}]")


def arguments_of(value: Any) -> str:
    """A call's arguments as text; models leave them out where there are none, or write `null`."""
    if isinstance(value, str):
        return NO_ARGUMENTS if value.strip() in NOTHING else value
    return dump(value).decode() if value is not None else NO_ARGUMENTS


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
    return Tool(
        name,
        text_at(value, "description", dropped, at) or "",
        object_at(value, schema_key, dropped, at),
        truth_at(value, "strict", dropped, at),
    )


def free_form(value: Json, dropped: Dropped, at: str) -> Tool | None:
    """A tool that takes text. The grammar it wants becomes a part of its description."""
    name = string(value.get("name"))
    if name is None:
        dropped.note(at.rstrip("."))
        return None
    dropped.rest(value, {"type", "name", "description", "format"}, at)
    description = text_at(value, "description", dropped, at) or ""
    wanted = object_at(value, "format", dropped, at)
    grammar = mapping(wanted.get("grammar")) or wanted
    if definition := string(grammar.get("definition")):
        syntax = string(grammar.get("syntax")) or ""
        description = f"{description}\n\n`input` has to follow this {syntax} grammar:\n{definition}".strip()
    elif wanted.get("type") not in (None, "text"):
        dropped.note(f"{at}format")
    return Tool(name, description, FREE_FORM, custom=True)


def openai_choice(value: Any, dropped: Dropped) -> ToolChoice | None:
    """`tool_choice` as OpenAI's two dialects write it."""
    if value in ("auto", "none", "required"):
        return ToolChoice(value)
    chosen = mapping(value)
    kind = chosen.get("type")
    if kind == "allowed_tools":
        dropped.note("tool_choice.tools")
        mode = mapping(chosen.get("allowed_tools", chosen)).get("mode")
        if mode in ("auto", "required"):
            return ToolChoice(mode)
        dropped.note("tool_choice.mode")
        return None
    name = string(mapping(chosen.get(kind, chosen)).get("name")) if kind in ("function", "custom") else None
    if name is None and value not in (None, {}):
        dropped.note("tool_choice")
    return ToolChoice("tool", name) if name else None


def openai_format(value: Json, key: str, dropped: Dropped, at: str = "", *, inner: str = "") -> Format | None:
    """The shape that the member `key` wants; its name and schema stand in `inner` of that, where given."""
    wanted = object_at(value, key, dropped, at)
    kind: Literal["json_schema", "json_object", "text"] | None = wanted.get("type")
    path = f"{at}{key}."
    if kind == "json_object":
        return Format(None)
    named, place = (object_at(wanted, inner, dropped, path), f"{path}{inner}.") if inner else (wanted, path)
    if kind != "json_schema" or not isinstance(named.get("schema"), dict):
        if wanted and kind != "text":
            dropped.note(f"{at}{key}")
        return None
    if inner:
        dropped.rest(wanted, {"type", inner}, path)
    dropped.rest(named, {"type", "name", "schema", "strict"}, place)
    name = text_at(named, "name", dropped, place) or "answer"
    return Format(named["schema"], name, truth_at(named, "strict", dropped, place))


def closed(schema: Any) -> Any:
    """A schema in which an object whose members are named says that it has no others, where it says nothing
    of it: without that it is refused. What several schemas say together stays open."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner: Json = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            inner[key] = {name: closed(each) for name, each in value.items()}
        else:
            inner[key] = value if key in _DATA or key == "allOf" else closed(value)
    if schema.get("properties") and "allOf" not in schema:
        inner.setdefault("additionalProperties", False)
    return inner


def split_result(parts: tuple[Text | Image, ...]) -> tuple[str, list[Image]]:
    """A tool's result as one text, and its images."""
    said: list[Part] = [part for part in parts if isinstance(part, Text)]
    text = "\n\n".join(part.text for part in said if isinstance(part, Text))
    return text, [part for part in parts if isinstance(part, Image)]
