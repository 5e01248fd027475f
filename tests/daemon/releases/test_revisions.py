"""Revisions mean one release of one scenario, or are not found."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.releases.revisions import parse_revision, resolve
from reef.errors import NotFound


@dataclass(frozen=True)
class Row:
    step: int
    release_id: str
    candidate_id: str | None = None
    published: bool = True


A, B, C, D = ("aaaa1" + "0" * 35, "aaaa2" + "0" * 35, "cccc" + "0" * 36, "dddd" + "0" * 36)
ROWS = [Row(0, A), Row(1, B), Row(2, B, C, published=False), Row(4, B, published=False), Row(5, D)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("HEAD", D),
        ("HEAD~0", D),
        ("HEAD~1", B),
        ("HEAD~", B),
        ("HEAD~2", A),
        ("-", B),
        ("step:0", A),
        ("step:2", C),
        ("step:5", D),
        ("step:3", "e" * 40),
        ("AAAA1", A),
        ("cccc", C),
        ("eeeee", "e" * 40),
        (D, D),
        ("good", B),
    ],
)
def test_resolves(text: str, found: str) -> None:
    assert resolve(text, ROWS, candidates={3: "e" * 40}, tags={"good": B}) == found


@pytest.mark.parametrize(
    "text",
    [
        "HEAD~3",
        "HEAD^",
        "HEAD~x",
        "step:4",
        "step:9",
        "step:",
        "aaaa",
        "aaa",
        "bad",
        "a/b",
        "--all",
        "",
        "HEAD@{1}",
        "f00d",
    ],
)
def test_anything_else_is_not_found(text: str) -> None:
    with pytest.raises(NotFound) as caught:
        resolve(text, ROWS, tags={"good": B})
    assert caught.value.hint


def test_nothing_is_served_yet() -> None:
    with pytest.raises(NotFound):
        resolve("-", [Row(0, A)])
    with pytest.raises(NotFound):
        resolve("HEAD", [])


@given(st.text(max_size=20))
def test_any_text_parses_or_is_not_found(text: str) -> None:
    try:
        revision = parse_revision(text)
    except NotFound:
        return
    assert revision.kind in ("back", "step", "id", "tag")
