"""Prometheus text, read back by the rules of the format."""

import re

from hypothesis import given
from hypothesis import strategies as st

from daemon.http.metrics import family

_LINE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[0-9.e+-]+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\\n]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def read(text: str) -> list[tuple[str, dict[str, str], float]]:
    """The samples of a text; fails on a line that is none."""
    found = []
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match, line
        labels = {
            name: re.sub(r"\\.", lambda escape: _ESCAPES[escape[0]], value)
            for name, value in _LABEL.findall(match[2] or "")
        }
        found.append((match[1], labels, float(match[3])))
    return found


@given(st.lists(st.tuples(st.tuples(st.text(), st.text()), st.floats(0, 1e12)), max_size=4))
def test_whatever_a_label_holds_it_is_read_back(samples: list[tuple[tuple[str, str], float]]) -> None:
    text = family("reef_x", "gauge", "Help.", ("a", "b"), samples)
    assert read(text) == [("reef_x", {"a": a, "b": b}, value) for (a, b), value in samples]


def test_one_without_labels_and_one_without_samples() -> None:
    text = family("reef_x", "gauge", "Help.", (), [((), 3)])
    assert text == "# HELP reef_x Help.\n# TYPE reef_x gauge\nreef_x 3\n"
    assert family("reef_x", "gauge", "Help.", ("a",), []) == ""
