"""A tree as files and back: the readable, adapter-neutral layout that a release holds.

A text lives in its own file; `reef.json` lists the entries in order with what is not text.
"""

import json
from typing import Any

import yaml

from daemon.harness.entries import EXTENSIONS, check_entry
from daemon.harness.text import canonical_json, plain
from daemon.releases.paths import check_paths
from reef.errors import Invalid, Refused
from reef.tree import Entry, EntryKind, HarnessTree

INDEX = "reef.json"
FORMAT = 1
_FRONT = "---\n"
_KEPT_ASIDE: dict[EntryKind, tuple[str, ...]] = {
    "rules": (),
    "skill": (),
    "agent_command": ("description",),
    "config": (),
    "code_extension": ("adapter", "language"),
    "examples": (),
}
"""Keys of a config that stand in the index, because no file has a place for them."""


def entry_path(entry: Entry) -> str:
    """The main file of an entry."""
    match entry.name:
        case "rules":
            return f"rules/{entry.id}.md"
        case "skill":
            return f"skills/{entry.config['name']}/SKILL.md"
        case "agent_command":
            return f"commands/{entry.config['name']}.md"
        case "config":
            return f"config/{entry.id}.json"
        case "code_extension":
            return f"extensions/{entry.config['name']}.{EXTENSIONS[entry.config['language']]}"
        case "examples":
            return f"examples/{entry.id}.json"


def entry_files(entry: Entry) -> list[tuple[str, bytes]]:
    """Every file of one (checked) entry, its main one first."""
    path = entry_path(entry)
    config = entry.config
    match entry.name:
        case "config":
            return [(path, canonical_json(config["values"]))]
        case "examples":
            return [(path, canonical_json({"turns": config["turns"]}))]
        case "skill":
            about = {"name": config["name"], "description": config["description"]}
            head = yaml.safe_dump(about, sort_keys=False, allow_unicode=True, width=2**20)
            extra = config.get("files", {}).items()
            folder = path.removesuffix("SKILL.md")
            main = f"{_FRONT}{head}{_FRONT}\n{config['text']}\n"
            return [(path, main.encode()), *((folder + name, text.encode()) for name, text in extra)]
        case _:
            return [(path, f"{config['text']}\n".encode())]


def to_files(tree: HarnessTree) -> dict[str, bytes]:
    """The files of a release that holds this tree, sorted by path.

    Raises:
        Refused: an entry is not legal, or two entries would have one file.
    """
    entries = [check_entry(entry) for entry in tree.entries]
    files = [(path, data) for entry in entries for path, data in entry_files(entry)]
    index = {
        "format": FORMAT,
        "entries": [_row(entry) for entry in entries],
        "requires": [plain(item) for item in tree.requires],
    }
    files.append((INDEX, canonical_json(index)))
    check_paths(path for path, _ in files)
    return dict(sorted(files))


def from_files(files: dict[str, bytes]) -> HarnessTree:
    """The tree that these files hold; no files at all are an empty tree.

    Raises:
        Invalid: they are not a tree of this format; the message names the file.
    """
    if not files:
        return HarnessTree()
    index = _json(files, INDEX)
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise Invalid(f"`{INDEX}` is not of format {FORMAT}", hint="a newer Reef wrote it; update this one")
    try:
        rows = list(index["entries"])
        entries = tuple(_entry(files, row) for row in rows)
        requires = tuple(str(item) for item in index.get("requires", []))
    except (KeyError, TypeError, AttributeError) as error:
        raise Invalid(f"`{INDEX}` is not what Reef writes: {error!r}") from None
    tree = HarnessTree(entries, requires)
    claimed = set(to_files(tree))
    if strange := next(
        (path for path in files if path not in claimed and not path.startswith("weights/")), None
    ):
        raise Invalid(f"`{strange}` belongs to no entry of `{INDEX}`", hint="remove it, or list it there")
    return tree


def _row(entry: Entry) -> dict[str, Any]:
    aside = {key: entry.config[key] for key in _KEPT_ASIDE[entry.name] if key in entry.config}
    row = {"id": entry.id, "name": entry.name, "path": entry_path(entry)} | aside
    return row | ({"disabled": True} if entry.disabled else {})


def _entry(files: dict[str, bytes], row: dict[str, Any]) -> Entry:
    kind: EntryKind = row["name"]
    if kind not in _KEPT_ASIDE:
        raise Invalid(f"`{INDEX}`: `{kind}` is not a kind of entry")
    path: str = row["path"]
    stem = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    config: dict[str, Any] = {key: row[key] for key in _KEPT_ASIDE[kind] if key in row}
    match kind:
        case "rules":
            config["text"] = _text(files, path)
        case "skill":
            config |= _skill(files, path)
        case "config":
            config["values"] = _json(files, path)
        case "examples":
            config["turns"] = _json(files, path)["turns"]
        case _:
            config |= {"name": stem, "text": _text(files, path)}
    try:
        entry = check_entry(Entry(row["id"], kind, config, bool(row.get("disabled", False))))
    except Refused as error:
        raise Invalid(f"`{path}`: {error.message}", hint=error.hint) from None
    if entry_path(entry) != path:
        raise Invalid(f"`{INDEX}`: entry `{entry.id}` should be in `{entry_path(entry)}`, not in `{path}`")
    return entry


def _skill(files: dict[str, bytes], path: str) -> dict[str, Any]:
    head, end, body = _text(files, path).removeprefix(_FRONT).partition("\n" + _FRONT)
    try:
        about = yaml.safe_load(head) if end else {}
        config = {"name": about["name"], "description": about["description"], "text": body}
    except (yaml.YAMLError, KeyError, TypeError):
        raise Invalid(f"`{path}` does not start with a name and a description between `---` lines") from None
    folder = path.removesuffix("SKILL.md")
    extra = {
        name[len(folder) :]: _text(files, name) for name in files if name.startswith(folder) and name != path
    }
    return config | ({"files": extra} if extra else {})


def _text(files: dict[str, bytes], path: str) -> str:
    if path not in files:
        raise Invalid(f"`{path}` is listed in `{INDEX}` but is not there")
    try:
        return files[path].decode()
    except UnicodeDecodeError:
        raise Invalid(f"`{path}` is not UTF-8 text") from None


def _json(files: dict[str, bytes], path: str) -> Any:
    try:
        return json.loads(_text(files, path))
    except json.JSONDecodeError as error:
        raise Invalid(f"`{path}` is not JSON: {error}") from None
