"""JSON schemas as an engine's grammar holds them: what no grammar can hold is left out, and said.

Paths are those of the schema's members, `[]` for any index: `properties.tags.uniqueItems`.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from daemon.runtimes.engine.endless import has_end
from daemon.runtimes.engine.grammars import Grammars
from daemon.wire.values import Json, dump, load_exact
from reef.errors import Invalid

_NAMED = ("properties", "patternProperties", "$defs", "definitions")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_SINGLE = ("items", "additionalProperties", "additionalItems")
"""Where a schema has schemas: under names, in a list, as they are."""
_INNER = frozenset((*_NAMED, *_LISTED, *_SINGLE))

_STYLE = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False, "coerce_one_of": True}
"""On one line: a small model may never end a run of spaces. A `oneOf` is taken for an `anyOf`."""
_MOST_REPEATED = 1000
"""A grammar counts by repeating itself: a million items take it minutes."""
_NUMBERS = frozenset(
    ("enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
)
_EXACT = 2**63
_LEAST = ("minItems", "minLength", "minProperties")
_COUNTS = frozenset(("minItems", "maxItems", "minProperties", "maxProperties"))
_REASON = re.compile(r"(?:at \S+: )?(?:failed to compile JSON schema: )?(.+?)(?:\n +\d+ \| .*)?$", re.DOTALL)
_ANY: Json = {"type": "object"}
_grammars = Grammars()
_KEPT = 256
"""Schemas, and grammars, that are remembered."""

_GBNF_UNREAD = frozenset(
    (
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"),
        *("minProperties", "maxProperties", "propertyNames", "patternProperties", "unevaluatedProperties"),
        *("dependentRequired", "dependentSchemas", "dependencies", "not", "if", "then", "else"),
    )
)
_GBNF_FORMATS = frozenset(("uuid", "date", "time", "date-time"))
_GBNF_PATTERN = re.compile(r"\^(?:[^\\(]|\((?!\?)|\\[^a-zA-Z0-9])*\$", re.DOTALL)

Held = tuple[Json, tuple[str, ...]]


def guided(schema: Json) -> Held:
    """The schema as llguidance holds it, and the paths of what it does not.

    Raises:
        Invalid: no answer can have this shape, or it leads to what is not there.
    """
    held, lost, why = _guided(dump(schema or _ANY))
    if why is not None:
        raise _no_grammar(why)
    return load_exact(held), lost


@lru_cache(maxsize=_KEPT)
def _guided(said: bytes) -> tuple[bytes, tuple[str, ...], str | None]:
    """The schema as it is held, what of it is not, or why it cannot be. An agent brings the same tools with
    every request."""
    lost: list[str] = []
    try:
        schema = _shaped(load_exact(said))
        if not has_end(schema):
            return said, (), "no answer of that shape comes to an end"
        if _counts_far(schema) or _refusal(schema, strict=True) is not None:
            schema = _without(schema, _unguided, lost)
            lost += _overlapping(schema)
        return dump(schema), tuple(dict.fromkeys(lost)), _refusal(schema)
    except (RecursionError, ValueError):
        return said, (), "it is nested too deeply"


def gbnf(schema: Json) -> Held:
    """The same for the grammars of llama-cpp-python, which makes them itself."""
    lost: list[str] = []
    return _without(schema, _no_gbnf, lost), tuple(dict.fromkeys(lost))


def grammar_of(schema: Json) -> str:
    """The grammar that llama.cpp takes for a schema that `guided` was asked about.

    Raises:
        Invalid: there is none.
    """
    grammar, why = _composed(dump(schema))
    if why is not None:
        raise _no_grammar(why)
    return grammar


@lru_cache(maxsize=_KEPT)
def _composed(said: bytes) -> tuple[str, str | None]:
    """The grammar of a schema, and why it is none."""
    schema = load_exact(said)
    return _grammar(schema), _refusal(schema)


def _no_grammar(why: str) -> Invalid:
    return Invalid(
        f"no grammar can be made of the JSON schema: {why}",
        hint="change what it names, or name an upstream that holds such a schema",
    )


def _grammar(schema: Json, *, strict: bool = False) -> str:
    style = _STYLE | {"coerce_one_of": not strict}
    return f"%llguidance {{}}\nstart: %json {dump(schema | {'x-guidance': style}).decode()}"


def _refusal(schema: Json, *, strict: bool = False) -> str | None:
    """Why llguidance makes no grammar of it. The engine would answer without one, and say so in its log."""
    why = _grammars.refusal(_grammar(schema, strict=strict))
    found = _REASON.match(why) if why else None
    return " ".join(found[1].split()) if found else None


def _shaped(schema: Json) -> Json:
    """What its author most likely meant: members make an object, and those that are named are all. Where
    schemas are put together (`allOf`) that stays open, as one of them may name what another does not."""
    schema = _without(schema, _idle, [])
    nodes = [node for _, node in _nodes(schema)]
    joined = [inner for node in nodes if _joins(node) for _, inner in _nodes(node)]
    if any("$ref" in node for node in joined):
        joined += [node for key in ("$defs", "definitions") for _, node in _nodes({key: schema.get(key)})]
    together = {id(node) for node in joined}
    for node in nodes:
        if isinstance(node.get("items"), list):  # as drafts before 2020-12 say it
            node["prefixItems"] = node.pop("items")
            if "additionalItems" in node:
                node["items"] = node.pop("additionalItems")
        if "type" not in node:
            if "properties" in node:
                node["type"] = "object"
            elif "items" in node or "prefixItems" in node:
                node["type"] = "array"
        names, required = node.get("properties"), node.get("required", [])
        named = (
            isinstance(names, dict) and isinstance(required, list) and all(key in names for key in required)
        )
        if (
            named
            and id(node) not in together
            and not node.keys() & {"additionalProperties", "patternProperties"}
        ):
            node["additionalProperties"] = False
    return schema


def _idle(node: Json) -> set[str]:
    """What says nothing of an answer. A schema that stands in another has no address of its own, and one
    version serves all."""
    idle = {key for key in ("$schema", "$id") if isinstance(node.get(key), str)}
    idle |= {key for key in _LEAST if node.get(key) == 0 and not isinstance(node[key], bool)}
    if node.get("uniqueItems") is False:
        idle.add("uniqueItems")
    for key, others in (("unevaluatedProperties", "additionalProperties"), ("unevaluatedItems", "items")):
        if node.get(key) is True or (node.get(key) is False and node.get(others) is False):
            idle.add(key)
    return idle


def _joins(node: Json) -> bool:
    """Whether the node is the intersection of several schemas."""
    several = node.get("allOf")
    ways = len(several) if isinstance(several, list) else 0
    ways += sum(key in node for key in ("anyOf", "oneOf", "$ref"))
    return ways + bool(node.keys() & {"properties", "required", "additionalProperties"}) > 1


def _nodes(value: Any, at: str = "") -> list[tuple[str, Json]]:
    """The schema and all in it, with their paths."""
    if not isinstance(value, dict):
        return []
    found = [(at, value)]
    for key, member in value.items():
        if key in _NAMED and isinstance(member, dict):
            for name, inner in member.items():
                found += _nodes(inner, f"{at}{key}.{name}.")
        elif key in _LISTED and isinstance(member, list):
            for inner in member:
                found += _nodes(inner, f"{at}{key}[].")
        elif key in _SINGLE:
            found += _nodes(member, f"{at}{key}.")
    return found


def _without(value: Any, unread: Callable[[Json], set[str]], lost: list[str], at: str = "") -> Any:
    """A copy without the members that are `unread`; their paths go to `lost`."""
    if not isinstance(value, dict):
        return value
    found: Json = {}
    left_out = unread(value)
    for key, member in value.items():
        here = f"{at}{key}"
        if key in left_out:
            lost.append(here)
            continue
        if key in _NAMED and isinstance(member, dict):
            member = {
                name: _without(inner, unread, lost, f"{here}.{name}.") for name, inner in member.items()
            }
        elif key in _LISTED and isinstance(member, list):
            member = [_without(inner, unread, lost, f"{here}[].") for inner in member]
        elif key in _SINGLE:
            member = _without(member, unread, lost, f"{here}.")
        found[key] = member
    return found


def _counts_far(schema: Any) -> bool:
    return any(_far(key, member) for _, node in _nodes(schema) for key, member in node.items())


def _far(key: str, value: Any) -> bool:
    """Whether a keyword counts further than a grammar does, or names a number that it rounds."""
    if key in _COUNTS:
        return isinstance(value, int) and value > _MOST_REPEATED
    values = value if key == "enum" and isinstance(value, list) else [value]
    return key in _NUMBERS and any(isinstance(each, int) and not -_EXACT <= each < _EXACT for each in values)


def _unguided(node: Json) -> set[str]:
    """What llguidance does not read of a schema, apart from the schemas in it: it is asked. What can never
    be (a minimum above the maximum) is kept, to be refused."""
    names = node.get("properties")
    base: Json = {key: node[key] for key in ("type", "required") if key in node}
    if isinstance(names, dict):
        base["properties"] = dict.fromkeys(names, True)
    left_out: set[str] = set()
    for key, member in node.items():
        if key in base or key == "$ref" or (key in _INNER and key != "patternProperties"):
            continue
        if key == "patternProperties" and isinstance(member, dict):
            member = dict.fromkeys(member, True)
        why = "it is far" if _far(key, member) else _refusal(base | {key: member})
        if why is None:
            base[key] = member
        elif "nsatisfiable" not in why:
            left_out.add(key)
    return left_out


def _overlapping(schema: Json) -> list[str]:
    """The `oneOf` of which more than one may hold: that they exclude each other has to be plain to see."""
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return [
        f"{at}oneOf"
        for at, node in _nodes(schema)
        if "oneOf" in node and _refusal(shared | {"oneOf": node["oneOf"]}, strict=True) is not None
    ]


def _no_gbnf(node: Json) -> set[str]:
    left_out = {key for key in node if key in _GBNF_UNREAD}
    if "format" in node and node["format"] not in _GBNF_FORMATS:
        left_out.add("format")
    if "pattern" in node and not _GBNF_PATTERN.fullmatch(str(node["pattern"])):
        left_out.add("pattern")
    return left_out
