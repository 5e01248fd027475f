"""A tree as an agent sees it: the text in front of a chat, or the files it installs."""

from collections.abc import Mapping
from dataclasses import dataclass

from daemon.harness.adapters import Adapter, adapter
from daemon.harness.files import to_files
from daemon.wire.prefix import Prefix
from reef.tree import Entry, HarnessTree


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that the adapter cannot use, and why."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class RenderedFiles:
    """What `GET /reef/harness` shows: path to text, and what was left out."""

    files: Mapping[str, str]
    skipped: tuple[Skipped, ...]


def chat_prefix(tree: HarnessTree) -> Prefix:
    """What stands in front of a chat: rules and skills in entry order, then worked examples as turns."""
    texts = [text for entry in tree.active if (text := _system_text(entry))]
    turns = tuple(
        (turn["user"], turn["assistant"])
        for entry in tree.active
        if entry.name == "examples"
        for turn in entry.config["turns"]
    )
    return Prefix("\n\n".join(texts), turns)


def render(tree: HarnessTree, adapter_name: str) -> RenderedFiles:
    """The tree for one adapter.

    The `chat` adapter installs nothing, so its files are the release's own.

    Raises:
        NotFound: there is no such adapter.
    """
    chosen = adapter(adapter_name)
    files = {path: data.decode() for path, data in to_files(tree).items()}
    return RenderedFiles(files, tuple(_skipped(tree, chosen)))


def _system_text(entry: Entry) -> str:
    if entry.name == "rules":
        return str(entry.config["text"])
    if entry.name == "skill":
        config = entry.config
        return f"## Skill: {config['name']}\n{config['description']}\n\n{config['text']}"
    return ""


def _skipped(tree: HarnessTree, chosen: Adapter) -> list[Skipped]:
    found = [Skipped(entry.id, "disabled") for entry in tree.entries if entry.disabled]
    return found + [
        Skipped(entry.id, f"the {chosen.name} adapter has no use for `{entry.name}`")
        for entry in tree.active
        if entry.name not in chosen.kinds
    ]
