"""Where the refs of a scenario are, and moving them by compare-and-swap."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from daemon.releases.objects import Objects
from daemon.releases.plumbing import GitFailed, Plumbing
from daemon.releases.standing import Standing
from reef.errors import Conflict, Invalid
from reef.ids import check_scenario

_NONE = "0" * 40
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_LOOKS_LIKE_ID = re.compile(r"[0-9a-fA-F]{4,}")


def branch(scenario: str) -> str:
    return f"refs/heads/{check_scenario(scenario)}"


def candidates(scenario: str) -> str:
    return f"refs/reef/candidates/{check_scenario(scenario)}/"


def candidate(scenario: str, step: int) -> str:
    return f"{candidates(scenario)}{step:d}"


def tags(scenario: str) -> str:
    return f"refs/tags/{check_scenario(scenario)}/"


def tag(scenario: str, name: str) -> str:
    return f"{tags(scenario)}{name}"


def archived(scenario: str, number: int | None = None) -> str:
    return f"refs/reef/archived/{check_scenario(scenario)}/{'' if number is None else number}"


def check_tag(name: str) -> str:
    """Return `name` if it may be a tag: never something that also reads as another revision.

    Raises:
        Invalid: with the rule in the hint.
    """
    legal = (
        _TAG.fullmatch(name)
        and ".." not in name
        and not name.endswith((".", ".lock"))
        and name.upper() != "HEAD"
        and not _LOOKS_LIKE_ID.fullmatch(name)
    )
    if not legal:
        raise Invalid(
            f"`{name[:80]}` cannot be a tag",
            hint="use 1-64 of A-Z a-z 0-9 . _ -, not starting with . or -, not HEAD, not digits of an id",
        )
    return name


class Refs:
    """The refs of one repository. The caller holds the repository's lock while it changes them."""

    def __init__(self, git: Plumbing, objects: Objects) -> None:
        self._git = git
        self._objects = objects
        self._mover = Standing(git, "update-ref", "--stdin")

    def end(self) -> None:
        """End the command that stays."""
        self._mover.end()

    def get(self, ref: str) -> str | None:
        """The commit id at `ref` (a full name), or None."""
        return self.below(ref).get(ref)

    def below(self, prefix: str) -> dict[str, str]:
        """Every ref at or below `prefix` with its commit id, sorted by name."""
        rows = self._git.text("for-each-ref", "--format=%(refname) %(objectname)", prefix.rstrip("/"))
        return dict(row.split(" ", 1) for row in rows.splitlines())

    def move(self, ref: str, commit: str, expected: str | None, *, may_be_behind: bool = False) -> None:
        """Set `ref` to `commit` if it is at `expected` (None: does not exist) or there already.

        `may_be_behind`: a ref that has moved past `commit` counts as being there.
        """
        try:
            self._mover.ask(f"start\nupdate {ref} {commit} {expected or _NONE}\ncommit\n", lines=2)
        except GitFailed:
            found = self.get(ref)
            if found != commit and not (may_be_behind and found and self._is_ancestor(commit, found)):
                if found == expected:
                    raise
                raise Conflict(
                    f"stale head: {ref} is at {(found or 'nothing')[:12]}, "
                    f"not at {(expected or 'nothing')[:12]}",
                    hint="somebody else changed it meanwhile; look at `reef log` and try again",
                ) from None
        self._sync(ref)

    def delete(self, ref: str) -> None:
        """Delete `ref`; it may be gone already."""
        self._git.run("update-ref", "-d", ref)

    def rename(self, moves: Mapping[str, str], commits: Mapping[str, str]) -> None:
        """Move refs (old name to new name) in one transaction; each must be at `commits[old]`."""
        lines = [f"create {new} {commits[old]}\ndelete {old} {commits[old]}\n" for old, new in moves.items()]
        if lines:
            self._git.run("update-ref", "--stdin", stdin="".join(lines).encode())

    def point_head_at(self, ref: str) -> None:
        """Make the repository's HEAD name `ref` unless it names a branch that exists."""
        if self._objects.find(["HEAD"]) == [None]:
            self._git.run("symbolic-ref", "HEAD", ref)

    def heal_head(self) -> None:
        """After a branch went away: HEAD names the first branch that is left, if any is."""
        if left := next(iter(self.below("refs/heads/")), None):
            self.point_head_at(left)

    def _is_ancestor(self, old: str, new: str) -> bool:
        return old in self._git.text("rev-list", "--first-parent", new).split()

    def _sync(self, ref: str) -> None:
        """Make the new name of a ref's file survive power loss, as git does for its content only."""
        folder = Path(self._git.path, ref).parent
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # somebody packed the refs meanwhile, which git makes durable
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
