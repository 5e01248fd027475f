"""The git-backed history: trees, commits and refs of every scenario, in one bare repository.

Owns: what is in `releases.git` and how its refs move (by compare-and-swap only).
Does not own: the listing of releases (the database has it) or what a tree means (`daemon.harness`).
All functions block; call them in a thread. One `GitReleases` per repository; it holds the lock.
"""

import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from daemon.releases.commits import CommitPlan
from daemon.releases.objects import EMPTY_TREE, Objects
from daemon.releases.paths import check_paths
from daemon.releases.plumbing import Plumbing
from daemon.releases.refs import Refs, archived, branch, candidate, candidates, check_tag, tag, tags
from reef.errors import Invalid, NotFound
from reef.ids import check_scenario

_ID = re.compile(r"[0-9a-f]{40}")


class GitReleases:
    """The history of all scenarios.

    Every method raises `Unavailable` when git is missing or the repository cannot be written.
    """

    def __init__(self, path: Path) -> None:
        """Open the repository at `path`, made if it is not there."""
        self.path = path
        self._git = Plumbing(path)
        self._git.open()
        self._objects = Objects(self._git)
        self._refs = Refs(self._git, self._objects)
        self._lock = threading.RLock()

    def close(self) -> None:
        """End the git commands that stay between calls; the next call starts those that it needs."""
        self._objects.end()
        self._refs.end()

    # -- contents

    def write_tree(self, files: Mapping[str, bytes]) -> str:
        """Store `files` (path: bytes) and return their content id.

        Raises:
            Refused: a path that a release may not hold, or two that collide.
        """
        check_paths(files)
        return self._objects.write_tree(files)

    def read_tree(self, object_id: str) -> dict[str, bytes]:
        """The files (path: bytes) of a content id or a release id.

        Raises:
            NotFound: there is no such object.
        """
        rows = self._list(object_id)
        raw = self._git.run("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob, _ in rows).encode())
        found: dict[str, bytes] = {}
        at = 0
        for _, path in rows:
            line_end = raw.index(b"\n", at)
            told = raw[at:line_end].decode()
            if told.endswith(" missing"):
                raise self._git.failure("cat-file", told)
            size = int(told.rsplit(" ", 1)[1])
            found[path] = raw[line_end + 1 : line_end + 1 + size]
            at = line_end + size + 2
        return found

    def files(self, object_id: str) -> tuple[str, ...]:
        """The paths that a content id or a release id holds, sorted."""
        return tuple(path for _, path in self._list(object_id))

    def content_id(self, release_id: str) -> str:
        """The content id of a release."""
        return self._object(release_id, "tree")

    def diff(self, from_id: str | None, to_id: str, *, paths: Sequence[str] = ()) -> str:
        """A unified diff between two contents or releases; `from_id` None compares with nothing."""
        return self._git.run(
            "diff-tree", "-p", "-r", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color",
            self._object(from_id, "tree") if from_id else EMPTY_TREE, self._object(to_id, "tree"),
            "--", *paths,
        ).decode("utf-8", "replace")  # fmt: skip

    # -- releases

    def commit(self, plan: CommitPlan) -> str:
        """Store a commit and return its id: the same plan gives the same id. No ref moves."""
        check_scenario(plan.scenario)
        if plan.recorded_at.tzinfo is None:
            raise Invalid("`recorded_at` has no time zone")
        tree, *parents = self._find(
            (plan.content_id, "tree"), *([(plan.parent, "commit")] if plan.parent else [])
        )
        return self._objects.write_commit(tree, parents, plan.message, int(plan.recorded_at.timestamp()))

    def publish(self, scenario: str, release_id: str, expected: str | None) -> None:
        """Move the scenario's head from `expected` (None: it has none yet) to `release_id`.

        A publish that already happened may be repeated.

        Raises:
            Conflict: the head is another one (stale head).
            NotFound: there is no such commit.
        """
        with self._lock:
            self._object(release_id, "commit")
            self._refs.point_head_at(branch(scenario))
            self._refs.move(branch(scenario), release_id, expected, may_be_behind=True)

    def head(self, scenario: str) -> str | None:
        """The release id at the scenario's head, or None before its first release."""
        return self._refs.get(branch(scenario))

    def scenarios(self) -> tuple[str, ...]:
        """The scenarios that have a release, sorted by name."""
        return tuple(name.removeprefix("refs/heads/") for name in self._refs.below("refs/heads/"))

    def keep_candidate(self, scenario: str, step: int, release_id: str) -> None:
        """Keep a commit that is not served, so that it can be shown, diffed and promoted.

        A step that starts over replaces its earlier one.
        """
        with self._lock:
            ref = candidate(scenario, step)
            self._refs.move(ref, self._object(release_id, "commit"), self._refs.get(ref))

    def drop_candidate(self, scenario: str, step: int) -> None:
        """Forget a candidate; one that is gone already is fine."""
        with self._lock:
            self._refs.delete(candidate(scenario, step))

    def candidates(self, scenario: str) -> dict[int, str]:
        """The kept candidates of a scenario: step to release id."""
        found = self._refs.below(candidates(scenario))
        return {int(name.rsplit("/", 1)[1]): commit for name, commit in found.items()}

    def tag(self, scenario: str, name: str, release_id: str) -> None:
        """Give a release a name.

        Raises:
            Invalid: the name is not a legal tag.
            Conflict: the name is another release's.
        """
        with self._lock:
            self._refs.move(tag(scenario, check_tag(name)), self._object(release_id, "commit"), None)

    def tags(self, scenario: str) -> dict[str, str]:
        """The tags of a scenario: name to release id."""
        return {name.rsplit("/", 1)[1]: commit for name, commit in self._refs.below(tags(scenario)).items()}

    def archive(self, scenario: str) -> tuple[str, ...]:
        """Move the scenario's branch, candidates and tags under `refs/reef/archived/`, in one transaction.

        Returns the new refs; empty when the scenario has none (or was archived already).
        """
        with self._lock:
            sources = (branch(scenario), candidates(scenario), tags(scenario))
            owned = {name: commit for source in sources for name, commit in self._refs.below(source).items()}
            taken = self._refs.below(archived(scenario))
            number = int(time.time())
            while any(name.startswith(archived(scenario, number)) for name in taken):
                number += 1
            places = dict(zip(sources, ("", ".candidates/", ".tags/"), strict=True))
            moves = {
                name: archived(scenario, number) + places[source] + name[len(source) :]
                for source in sources
                for name in owned
                if name.startswith(source)
            }
            self._refs.rename(moves, owned)
            self._refs.heal_head()
            return tuple(moves.values())

    def history(self, release_id: str) -> list[str]:
        """The release ids from this one back to the first, newest first."""
        return self._git.text("rev-list", "--first-parent", self._object(release_id, "commit")).split()

    # -- helpers

    def _list(self, object_id: str) -> list[tuple[str, str]]:
        raw = self._git.run("ls-tree", "-r", "-z", self._object(object_id, "tree")).decode(
            "utf-8", "surrogateescape"
        )
        rows = (row.split("\t", 1) for row in raw.split("\0") if row)
        return [(meta.split(" ")[2], path) for meta, path in rows]

    def _object(self, object_id: str, kind: str) -> str:
        """The full id of the object as a `tree` or `commit`. Raises `NotFound`."""
        return self._find((object_id, kind))[0]

    def _find(self, *wanted: tuple[str, str]) -> list[str]:
        """The full id of each (id, kind) as that kind. Raises `NotFound`."""
        for object_id, _ in wanted:
            if not _ID.fullmatch(object_id):
                raise NotFound(f"`{object_id[:80]}` is not the full id of a release or content")
        found: list[str] = []
        names = [f"{object_id}^{{{kind}}}" for object_id, kind in wanted]
        for (object_id, _), full in zip(wanted, self._objects.find(names), strict=True):
            if full is None:
                raise NotFound(
                    f"{object_id[:12]} is not in the history", hint="`reef log --all` lists what is"
                )
            found.append(full)
        return found
