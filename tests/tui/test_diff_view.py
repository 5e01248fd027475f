"""Reading a diff: nothing that changed is lost, whatever is in it."""

from hypothesis import given
from hypothesis import strategies as st

from reef_cli.tui.widgets.diff_view import pairs, read, side_by_side, unified, words

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
    before, after = words("Answer briefly, please.", "Answer very briefly.")
    assert before.plain == "Answer briefly, please."
    marked = {after.plain[span.start : span.end] for span in after.spans if "underline" in str(span.style)}
    assert "very" in " ".join(marked)


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
