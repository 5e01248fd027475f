"""Whether a JSON schema has an answer that comes to an end: one may demand itself for ever, or allow none."""

from collections.abc import Iterator, Set
from typing import Any

from daemon.wire.values import Json, mapping


def has_end(schema: Json) -> bool:
    """Whether there is such an answer. A reference to what is not in the schema is taken for one that has."""
    targets = {target for target in _references(schema) if target.startswith("#")}
    ended = frozenset[str]()
    while more := {target for target in targets - ended if _ends(_at(schema, target), ended, targets)}:
        ended |= more
    return _ends(schema, ended, targets)


def _ends(schema: Any, ended: Set[str], targets: Set[str]) -> bool:
    """Whether a schema has an end, if of the references `targets` those that `ended` have one."""
    if not isinstance(schema, dict):
        return schema is not False

    def inner(value: Any) -> bool:
        return _ends(value, ended, targets)

    if schema.get("$ref") in targets and schema["$ref"] not in ended:
        return False
    for key in ("anyOf", "oneOf"):
        ways = schema.get(key)
        if isinstance(ways, list) and not any(map(inner, ways)):
            return False
    parts = schema.get("allOf")
    if isinstance(parts, list) and not all(map(inner, parts)):
        return False
    if schema.get("type", "object") == "object":
        names = mapping(schema.get("properties"))
        if not all(inner(names.get(name, True)) for name in _strings(schema.get("required"))):
            return False
    least = schema.get("minItems")
    if not isinstance(least, int) or least < 1 or schema.get("type", "array") != "array":
        return True
    first = schema.get("prefixItems")
    given = first if isinstance(first, list) else []
    return all(map(inner, given[:least])) and (least <= len(given) or inner(schema.get("items", True)))


def _strings(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            yield target
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _at(whole: Json, target: str) -> Any:
    """What a reference leads to; anything (True) where there is nothing."""
    place: Any = whole
    for part in target[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        place = place.get(key, True) if isinstance(place, dict) else True
    return place
