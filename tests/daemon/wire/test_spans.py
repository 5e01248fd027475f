import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daemon.wire.spans import Edit, Layout, add_elements, add_member, add_text, apply

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text("abcdefg", min_size=1, max_size=3), VALUES, max_size=5)
STYLES = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}])


@given(OBJECTS, STYLES)
def test_members_are_found_where_they_stand(value: dict[str, Any], style: dict[str, Any]) -> None:
    body = b" \n" + json.dumps(value, **style).encode() + b"\n"
    layout = Layout(body)
    members = layout.members(layout.root())
    assert {key: json.loads(body[span.start : span.end]) for key, span in members.items()} == value


@given(st.lists(VALUES, max_size=5), STYLES)
def test_elements_are_found_where_they_stand(value: list[Any], style: dict[str, Any]) -> None:
    body = json.dumps(value, **style).encode()
    layout = Layout(body)
    assert [json.loads(body[span.start : span.end]) for span in layout.elements(layout.root())] == value


@given(OBJECTS, TEXTS, STYLES)
def test_what_is_added_stands_in_front(value: dict[str, Any], text: str, style: dict[str, Any]) -> None:
    value |= {"list": [1], "none": [], "text": text}
    body = json.dumps(value, **style).encode()
    layout = Layout(body)
    root = layout.root()
    members = layout.members(root)
    edits = [
        add_member(layout, root, "new", b"true"),
        add_elements(layout, members["list"], [b"8", b"9"]),
        add_elements(layout, members["none"], [b"8"]),
        add_text(layout, members["text"], 'q"\n'),
    ]
    changed = json.loads(apply(body, edits))
    joined = 'q"\n' + ("\n\n" + text if text else "")
    assert changed == value | {"new": True, "list": [8, 9, 1], "none": [8], "text": joined}
    assert next(iter(changed)) == "new"


def test_a_key_that_occurs_twice_counts_where_it_is_last() -> None:
    body = b'{"a":1,"a":[2]}'
    layout = Layout(body)
    span = layout.members(layout.root())["a"]
    assert apply(body, [Edit(span.start, span.end, b"3")]) == b'{"a":1,"a":3}'
