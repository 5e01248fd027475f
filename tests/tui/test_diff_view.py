"""Reading a diff: nothing that changed is lost, whatever is in it."""

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from reef_cli.tui.widgets.diff_view import changed_words, pairs, read, side_by_side, unified

DIFF = """diff --git a/rules/a.md b/rules/a.md
index 1..2 100644
--- a/rules/a.md
+++ b/rules/a.md
@@ -1,2 +1,2 @@
 keep
-Answer briefly, please.
+Answer very briefly.
+And politely.
"""


def test_changed_words_are_marked() -> None:
    old, new = "Answer briefly, please.", "Answer very briefly."
    before, after = changed_words(old, new)
    assert "".join(old[start:end] for start, end in before) == ", please"
    assert "".join(new[start:end] for start, end in after) == "very "


def styles_of(text: Text, word: str) -> list[str]:
    at = text.plain.index(word)
    return [str(span.style) for span in text.spans if span.start <= at < span.end]


def test_lines_are_coloured_by_the_type_of_their_file() -> None:
    code = "@@ -1 +1 @@\n-value = None\n+value = True\n"
    python = unified(f"diff --git a/a.py b/a.py\n{code}")
    prose = unified(f"diff --git a/a.txt b/a.txt\n{code}")
    assert python.plain.replace("a.py", "a.txt") == prose.plain
    assert styles_of(python, "True") != styles_of(prose, "True")
    for text in (python, prose):
        assert any("underline" in style for style in styles_of(text, "True"))


def test_a_light_theme_has_tones_of_its_own() -> None:
    dark, light = (unified(DIFF, dark=dark) for dark in (True, False))
    assert dark.plain == light.plain
    assert styles_of(dark, "politely") != styles_of(light, "politely")


def test_both_layouts_hold_every_line() -> None:
    text = unified(DIFF).plain
    for line in (
        "rules/a.md",
        "  keep",
        "- Answer briefly, please.",
        "+ Answer very briefly.",
        "+ And politely.",
    ):
        assert line in text
    assert side_by_side(DIFF).row_count == 5


line = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), max_size=20)


@given(st.lists(st.tuples(st.sampled_from("+- "), line), max_size=30))
def test_no_changed_line_is_lost(lines: list[tuple[str, str]]) -> None:
    diff = "diff --git a/x b/x\n@@ -1 +1 @@\n" + "\n".join(kind + text for kind, text in lines)
    changed = sorted(f"{kind}{text}" for kind, text in lines if kind != " ")
    seen = [one for pair in pairs(read(diff)) for one in pair if one and one.kind in "+-"]
    assert sorted(f"{one.kind}{one.text}" for one in seen) == changed
