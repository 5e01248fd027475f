"""Objects of the repository: finding them, and writing files, trees and commits.

Owns: the git commands that stay for this. What they write is on the disk (`core.fsync`) when they answer.
"""

import tempfile
from collections.abc import Mapping, Sequence
from hashlib import sha1
from pathlib import Path

from daemon.releases.plumbing import IDENTITY, Plumbing, writing
from daemon.releases.standing import Standing


class Objects:
    """Every method raises `GitFailed` when the repository cannot be read or written."""

    def __init__(self, git: Plumbing) -> None:
        self._finder = Standing(git, "cat-file", "--batch-check=%(objectname)")
        self._blobs = Standing(git, "hash-object", "-w", "--no-filters", "--stdin-paths")
        # git need not look for what the entries name: it was found or written a moment ago
        self._trees = Standing(git, "mktree", "-z", "--missing", "--batch")
        self._commits = Standing(git, "hash-object", "-w", "--no-filters", "-t", "commit", "--stdin-paths")

    def find(self, names: Sequence[str]) -> list[str | None]:
        """The full id that each of `names` (an id, `ID^{tree}`, a full ref name) stands for, or None."""
        answers = self._finder.ask_each(names)
        return [None if answer.endswith(" missing") else answer for answer in answers]

    def write_blobs(self, contents: Sequence[bytes]) -> list[str]:
        """Store each of `contents` that is not stored yet; returns their ids."""
        ids = [sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() for data in contents]
        found = self.find(ids)
        new = {blob: data for blob, data, known in zip(ids, contents, found, strict=True) if known is None}
        self._store(self._blobs, list(new.values()))
        return ids

    def write_tree(self, blobs: Mapping[str, str]) -> str:
        """Store the tree of `blobs` (path: id), the folders in it first; returns its id."""
        below: dict[str, dict[str, str]] = {}
        entries = []
        for path, blob in blobs.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = blob
            else:
                entries.append(f"100644 blob {blob}\t{name}\0")
        entries += [f"040000 tree {self.write_tree(inner)}\t{name}\0" for name, inner in below.items()]
        return self._trees.ask("".join(entries) + "\0")[0]

    def write_commit(self, tree: str, parent: str | None, message: str, recorded_at: int) -> str:
        """Store the commit that `git commit-tree` makes of this; `recorded_at` is in Unix seconds."""
        lines = [
            f"tree {tree}",
            *([f"parent {parent}"] if parent else []),
            f"author {IDENTITY} {recorded_at} +0000",
            f"committer {IDENTITY} {recorded_at} +0000",
            "",
            message.replace("\0", "").removesuffix("\n"),
            "",
        ]
        return self._store(self._commits, ["\n".join(lines).encode("utf-8", "replace")])[0]

    def end(self) -> None:
        """End the commands that stay."""
        for command in (self._finder, self._blobs, self._trees, self._commits):
            command.end()

    def _store(self, writer: Standing, contents: Sequence[bytes]) -> list[str]:
        if not contents:
            return []
        temporary = tempfile.gettempdir()
        with writing(temporary), tempfile.TemporaryDirectory(prefix="reef-tree-", dir=temporary) as folder:
            paths = [f"{folder}/{number}" for number in range(len(contents))]
            for path, data in zip(paths, contents, strict=True):
                Path(path).write_bytes(data)
            return writer.ask_each(paths)
