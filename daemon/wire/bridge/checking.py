"""Refusing what no provider takes: a bridge that left it out would have something else answered.

Each function looks at members of one object, which stands at the path `at` of the request; one that is not
there, or null, is fine. All raise Invalid.
"""

from collections.abc import Callable
from typing import Any

from daemon.wire.bridge.reading import number
from daemon.wire.values import Json, mappings
from reef.errors import Invalid


def wrong(path: str, what: str) -> Invalid:
    return Invalid(f"`{path}` {what}", hint="see the provider's documents")


def check_lists(value: Json, *keys: str, at: str = "") -> None:
    """Lists of objects."""
    _check(value, keys, at, _is_list, "is no list of objects")


def check_objects(value: Json, *keys: str, at: str = "") -> None:
    _check(value, keys, at, lambda found: isinstance(found, dict), "is no object")


def check_texts(value: Json, *keys: str, at: str = "") -> None:
    _check(value, keys, at, lambda found: isinstance(found, str), "is no text")


def check_words(value: Json, key: str) -> None:
    """A text, or a list of them."""
    _check(value, (key,), "", _is_words, "is neither text nor a list of texts")


def check_numbers(value: Json, *keys: str) -> None:
    _check(value, keys, "", lambda found: number(found) is not None, "is no number")


def check_truths(value: Json, *keys: str, at: str = "") -> None:
    _check(value, keys, at, lambda found: isinstance(found, bool), "is neither true nor false")


def check_choice(value: Json, *kinds: type) -> None:
    """A `tool_choice` of one of these kinds."""
    what = "is neither text nor an object" if str in kinds else "is no object"
    _check(value, ("tool_choice",), "", lambda found: isinstance(found, kinds), what)


def check_content(
    value: Json, key: str, at: str, check_part: Callable[[Json, str], None], *, bare: bool = False
) -> None:
    """A text, or a list of parts, each of which is given to `check_part` with the path of its members. With
    `bare` a part may be a mere text."""
    content = value.get(key)
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise wrong(f"{at}{key}", "is neither text nor a list")
    for count, part in enumerate(content):
        if isinstance(part, dict):
            check_part(part, f"{at}{key}[{count}].")
        elif not (bare and isinstance(part, str)):
            raise wrong(f"{at}{key}[{count}]", "is no object")


def check_spoken(part: Json, at: str) -> None:
    """A part that is text, or a refusal."""
    if not isinstance(part.get("text", part.get("refusal")), str):
        raise wrong(f"{at}text", "is no text")


def _check(value: Json, keys: tuple[str, ...], at: str, fine: Callable[[Any], bool], what: str) -> None:
    for key in keys:
        found = value.get(key)
        if found is not None and not fine(found):
            raise wrong(f"{at}{key}", what)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and len(mappings(value)) == len(value)


def _is_words(value: Any) -> bool:
    listed = value if isinstance(value, list) else [value]
    return all(isinstance(item, str) for item in listed)
