"""A tree becomes readable files and comes back as it was."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from daemon.harness.entries import EXTENSIONS, check_entry
from daemon.harness.files import from_files, to_files
from reef.errors import Invalid, Refused
from reef.tree import Entry, HarnessTree

TEXT = st.text(min_size=1, max_size=60).filter(
    lambda text: text.strip() and not any(ord(c) < 32 for c in text)
)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,9}", fullmatch=True)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def configs(kind: str, name: str) -> st.SearchStrategy[dict[str, Any]]:
    optional = {"description": TEXT}
    match kind:
        case "rules":
            return st.fixed_dictionaries({"text": TEXT})
        case "skill":
            extra = st.dictionaries(NAMES.map(lambda stem: f"{stem}/notes.md"), TEXT, max_size=2)
            return st.fixed_dictionaries(
                {"name": st.just(name), "description": TEXT, "text": TEXT}, optional={"files": extra}
            )
        case "agent_command":
            return st.fixed_dictionaries({"name": st.just(name), "text": TEXT}, optional=optional)
        case "config":
            return st.fixed_dictionaries({"values": st.dictionaries(NAMES, JSON, max_size=3)})
        case "code_extension":
            languages = st.sampled_from(sorted(EXTENSIONS))
            return st.fixed_dictionaries(
                {"name": st.just(name), "adapter": NAMES, "language": languages, "text": TEXT}
            )
        case _:
            turn = st.fixed_dictionaries({"user": TEXT, "assistant": TEXT})
            return st.fixed_dictionaries({"turns": st.lists(turn, min_size=1, max_size=3)})


@st.composite
def trees(draw: st.DrawFn) -> HarnessTree:
    names = [
        name
        for name in draw(st.lists(NAMES, max_size=5, unique=True))
        if name not in ("con", "aux", "nul", "prn")
    ]
    kinds = ["rules", "skill", "agent_command", "config", "code_extension", "examples"]
    entries = []
    for name in names:
        kind = draw(st.sampled_from(kinds))
        entries.append(Entry(name, kind, draw(configs(kind, name)), draw(st.booleans())))
    return HarnessTree(tuple(entries), tuple(draw(st.lists(NAMES, max_size=2))))


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(trees())
def test_round_trip(tree: HarnessTree) -> None:
    try:
        stored = HarnessTree(tuple(map(check_entry, tree.entries)), tree.requires)
    except Refused:  # text that is blank once normalised
        reject()
    files = to_files(tree)
    assert from_files(files) == stored
    assert to_files(stored) == files


def test_the_layout() -> None:
    tree = HarnessTree(
        (
            Entry("style", "rules", {"text": "Be brief.\r\nCafe\u0301\n\n"}),
            Entry(
                "s",
                "skill",
                {
                    "name": "units",
                    "description": "On units: metric ---",
                    "text": "Use SI.",
                    "files": {"ref/a.md": "x"},
                },
            ),
            Entry(
                "c",
                "agent_command",
                {"name": "fix", "description": "Fix it", "text": "Fix $1"},
                disabled=True,
            ),
            Entry("m", "config", {"values": {"b": 1, "a": ["é"]}}),
            Entry(
                "x",
                "code_extension",
                {"name": "hook", "adapter": "pi", "language": "typescript", "text": "1"},
            ),
            Entry("e", "examples", {"turns": [{"user": "q", "assistant": " a "}]}),
        ),
        ("ripgrep",),
    )
    files = to_files(tree)
    assert files["rules/style.md"] == "Be brief.\nCafé\n".encode()
    assert files["skills/units/SKILL.md"].startswith(
        b"---\nname: units\ndescription: 'On units: metric ---'\n---\n\nUse"
    )
    assert files["config/m.json"] == '{\n  "a": [\n    "é"\n  ],\n  "b": 1\n}\n'.encode()
    assert sorted(files) == [
        "commands/fix.md",
        "config/m.json",
        "examples/e.json",
        "extensions/hook.ts",
        "reef.json",
        "rules/style.md",
        "skills/units/SKILL.md",
        "skills/units/ref/a.md",
    ]
    index = json.loads(files["reef.json"])
    assert index["format"] == 1
    assert index["requires"] == ["ripgrep"]
    assert index["entries"][2] == {
        "id": "c",
        "name": "agent_command",
        "path": "commands/fix.md",
        "description": "Fix it",
        "disabled": True,
    }
    assert b"Be brief" not in files["reef.json"]
    assert from_files(files).get("c") == check_entry(tree.entries[2])


def test_no_files_and_the_empty_tree() -> None:
    assert from_files({}) == HarnessTree() == from_files(to_files(HarnessTree()))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"reef.json": b"{"}, "not JSON"),
        ({"reef.json": b'{"format": 2}'}, "format 1"),
        ({"reef.json": b'{"format": 1, "entries": [{"id": 3}]}'}, "reef.json"),
        ({"rules/a.md": b"\xff"}, "UTF-8"),
        ({"rules/a.md": b"\n"}, "rules/a.md"),
        ({"rules/b.md": b"more"}, "rules/b.md"),
        ({"rules/a.md": None}, "not there"),
    ],
)
def test_a_damaged_tree_names_the_file(change: dict[str, bytes | None], says: str) -> None:
    files: dict[str, bytes | None] = {
        **to_files(HarnessTree((Entry("a", "rules", {"text": "x"}),))),
        **change,
    }
    with pytest.raises(Invalid, match=says):
        from_files({path: data for path, data in files.items() if data is not None})
