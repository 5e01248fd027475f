"""Objects of the repository: finding them, and writing files, folders and commits.

Owns: the git commands that stay for this, and the bytes of what is written. `git hash-object` checks their
form and has them on the disk when it answers; `git mktree` takes a folder as text, but heeds no `core.fsync`.
"""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Literal

from daemon.releases.plumbing import IDENTITY, Plumbing
from daemon.releases.standing import Standing

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git answers for this one though nobody stored it."""

Kind = Literal["blob", "tree", "commit"]


class Objects:
    """Every method raises `GitFailed` when the repository cannot be read or written."""

    def __init__(self, git: Plumbing) -> None:
        self._git = git
        self._finder = Standing(git, "cat-file", "--batch-check=%(objectname)")
        self._writers: dict[Kind, Standing] = {
            kind: Standing(git, "hash-object", "-w", "--no-filters", "-t", kind, "--stdin-paths")
            for kind in ("blob", "tree", "commit")
        }

    def find(self, names: Sequence[str]) -> list[str | None]:
        """The full id that each of `names` (an id, `ID^{tree}`, HEAD) stands for, or None.

        Not for other names: git also reads `NAME-gDIGITS`, even of a full ref, as the commit DIGITS.
        """
        answers = self._finder.ask_each(names)
        return [None if answer.endswith(" missing") else answer for answer in answers]

    def write_tree(self, files: Mapping[str, bytes]) -> str:
        """Store `files` (path: bytes) and return the id of their tree."""
        blobs = self._write("blob", list(files.values()))
        folders: list[bytes] = []
        _fold(dict(zip(files, blobs, strict=True)), folders)
        return self._write("tree", folders)[-1]

    def write_commit(self, tree: str, parents: Sequence[str], message: str, recorded_at: int) -> str:
        """Store the commit that `git commit-tree` makes of this; `recorded_at` is in Unix seconds."""
        lines = [
            f"tree {tree}",
            *(f"parent {parent}" for parent in parents),
            f"author {IDENTITY} {recorded_at} +0000",
            f"committer {IDENTITY} {recorded_at} +0000",
            "",
            message.replace("\0", ""),
        ]
        return self._write("commit", ["\n".join(lines).encode("utf-8", "replace")])[0]

    def end(self) -> None:
        """End the commands that stay."""
        for command in (self._finder, *self._writers.values()):
            command.end()

    def _write(self, kind: Kind, contents: Sequence[bytes]) -> list[str]:
        """Store each of `contents`, in this order; returns their ids.

        What is there already becomes as young as what is new: git prunes what is old and in no release.
        """
        ids = [_id(kind, data) for data in contents]
        rest = {name: data for name, data in zip(ids, contents, strict=True) if not self._is_renewed(name)}
        if rest:
            with self._git.scratch() as folder:
                for name, data in rest.items():
                    (folder / name).write_bytes(data)
                self._writers[kind].ask_each([f"{folder}/{name}" for name in rest])
        return ids

    def _is_renewed(self, name: str) -> bool:
        """Whether the object has a file of its own, which is young now. For one in a pack git does it."""
        try:
            os.utime(self._git.path / "objects" / name[:2] / name[2:])
        except OSError:
            return False
        return True


def _id(kind: Kind, data: bytes) -> str:
    """The id that git gives to an object."""
    return sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def _fold(blobs: Mapping[str, str], folders: list[bytes]) -> str:
    """Add the bytes of each folder of `blobs` (path: id) to `folders`, inner ones first; returns its id."""
    inner: dict[str, dict[str, str]] = {}
    entries: list[tuple[bytes, bytes]] = []
    for path, blob in blobs.items():
        name, slash, rest = path.partition("/")
        if slash:
            inner.setdefault(name, {})[rest] = blob
        else:
            entries.append((name.encode(), _entry(b"100644", name, blob)))
    # git sorts a folder as if its name ended in a slash
    entries += [
        (f"{name}/".encode(), _entry(b"40000", name, _fold(it, folders))) for name, it in inner.items()
    ]
    data = b"".join(entry for _, entry in sorted(entries))
    folders.append(data)
    return _id("tree", data)


def _entry(mode: bytes, name: str, object_id: str) -> bytes:
    return b"%s %s\0" % (mode, name.encode()) + bytes.fromhex(object_id)
