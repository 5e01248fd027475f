"""On which line of a file each key stands."""

from typing import Any

import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from daemon.settings.positions import toml_lines, yaml_document

KEYS = st.text(st.sampled_from("ab-_.\"' é#=[]"), min_size=1, max_size=5)
LEAVES = st.one_of(st.integers(-9, 9), st.text(st.sampled_from("ab\"'\n\\#=[]{}"), max_size=8), st.booleans())
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(KEYS, inner, max_size=3),
        st.lists(st.dictionaries(KEYS, inner, max_size=2), max_size=3),
    ),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_each_toml_key_is_found_on_its_line(data: dict[str, Any]) -> None:
    """Law: the scanner finds every key the parser finds outside inline tables, on a line that shows it."""
    text = tomli_w.dumps(data, multiline_strings=True)
    lines = toml_lines(text)
    for path, line in lines.items():
        value: Any = data
        for segment in path:
            value = value[segment]
        assert 1 <= line <= text.count("\n") + 1
    assert {(key,) for key in data} <= set(lines)


def test_yaml_lines() -> None:
    data, lines = yaml_document("a:\n  - b: 1\n  - b: 2\n")
    assert data == {"a": [{"b": 1}, {"b": 2}]}
    assert lines[("a", 1, "b")] == 3
