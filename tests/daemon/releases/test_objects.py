"""What is written to the repository: the very objects that git would make, on the disk, only what is new."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon.releases import plumbing
from daemon.releases.git import GitReleases
from daemon.releases.objects import EMPTY_TREE
from tests.daemon.releases.test_git import FILES, git, plan


def loose(repository: Path) -> set[Path]:
    return set((repository / "objects").glob("[0-9a-f][0-9a-f]/*"))


def test_threads_get_their_own_answers(releases: GitReleases) -> None:
    def work(number: int) -> bool:
        files = {f"{number}/{name}": b"%d of %d" % (name, number) for name in range(20)}
        return releases.read_tree(releases.write_tree(files)) == files

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(24)))
    assert "error" not in git(releases.path, "fsck", "--full", "--strict")


def test_only_what_is_new_is_written(releases: GitReleases) -> None:
    files = {f"rules/{number}.md": b"Rule %d.\n" % number for number in range(50)}
    releases.write_tree(files)
    before = loose(releases.path)
    releases.write_tree(files)
    assert loose(releases.path) == before
    releases.write_tree(files | {"rules/7.md": b"New.\n"})
    assert len(loose(releases.path) - before) == 3, "the file, its folder and the tree"


def test_somebody_packs_the_repository_meanwhile(releases: GitReleases) -> None:
    first = releases.commit(plan(releases.write_tree(FILES)))
    releases.publish("default", first, None)
    subprocess.run(["git", "-C", str(releases.path), "gc", "--quiet", "--prune=now"], check=True)
    assert loose(releases.path) == set()
    second = releases.commit(plan(releases.write_tree(FILES | {"new": b"1"}), first, step=1))
    releases.publish("default", second, first)
    releases.publish("default", second, first)
    assert releases.read_tree(second) == FILES | {"new": b"1"}
    assert git(releases.path, "log", "--format=%H", "default").split() == [second, first]


@pytest.mark.parametrize("message", ["One line", "Summary\n\nBody\n", "Grüße\n\n\n", "two\n\nTrailer: x"])
@pytest.mark.parametrize("with_parent", [False, True])
def test_a_commit_is_the_one_that_git_makes(
    releases: GitReleases, message: str, with_parent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = releases.write_tree(FILES)
    parents = [releases.commit(plan(releases.write_tree({})))] if with_parent else []
    made = releases._objects.write_commit(content, parents, message, 1_769_860_800)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Reef")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "reef@localhost")
        monkeypatch.setenv(f"GIT_{role}_DATE", "@1769860800 +0000")
    (releases.path / "message").write_text(message)
    words = [word for parent in parents for word in ("-p", parent)]
    told = git(releases.path, "commit-tree", content, *words, "-F", str(releases.path / "message"))
    assert made == told.strip()


def test_a_tree_is_the_one_that_git_makes(releases: GitReleases, tmp_path: Path) -> None:
    """Git sorts a folder as if its name ended in a slash."""
    files = {"a/b": b"1", "a.md": b"2", "a0": b"3", "a/c/d": b"4", "ä.md": b"5", "z": b""}
    for name, data in files.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_bytes(data)
    git(tmp_path, "init", "--quiet", "work")
    git(tmp_path / "work", "add", "-A")
    assert releases.write_tree(files) == git(tmp_path / "work", "write-tree").strip()


def test_the_empty_tree_is_stored_though_git_answers_for_it(releases: GitReleases) -> None:
    assert releases.write_tree({}) == EMPTY_TREE
    assert [file.parent.name + file.name for file in loose(releases.path)] == [EMPTY_TREE]


def test_all_of_a_release_is_on_the_disk_before_it_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git counts its own flushes: one for each object, and one for the ref."""
    version = git(tmp_path, "version").split()[2]
    if tuple(map(int, version.split(".")[:2])) < (2, 36):
        pytest.skip(f"git {version} does not count them")
    traces = tmp_path / "traces"
    traces.mkdir()
    monkeypatch.setitem(plumbing._ENVIRONMENT, "GIT_TRACE2_EVENT", str(traces))
    releases = GitReleases(tmp_path / "releases.git")
    releases.publish("default", releases.commit(plan(releases.write_tree(FILES))), None)
    releases.close()
    events = [json.loads(line) for file in traces.iterdir() for line in file.read_text().splitlines()]
    flushes = [int(event["value"]) for event in events if event.get("key") == "fsync/hardware-flush"]
    assert len(loose(releases.path)) == 3 + 4 + 1, "files, folders, the commit"
    assert sum(flushes) == 3 + 4 + 1 + 1
