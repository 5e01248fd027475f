"""What is written to the repository: the very objects that git would make, on the disk, only what is new."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon.releases import plumbing, standing
from daemon.releases.git import GitReleases
from daemon.releases.objects import EMPTY_TREE
from daemon.releases.plumbing import GitFailed
from reef.errors import NotFound
from tests.daemon.releases.test_git import FILES, git, plan

THREE_WEEKS_S = 21 * 86400


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


def published_with_a_lost_candidate(releases: GitReleases) -> str:
    """The head, of no files; FILES are a candidate that was packed, looked at and dropped."""
    first = releases.commit(plan(releases.write_tree({})))
    releases.publish("default", first, None)
    lost = releases.commit(plan(releases.write_tree(FILES), first, step=1))
    releases.keep_candidate("default", 1, lost)
    git(releases.path, "gc", "--quiet")
    assert releases.content_id(lost) == releases.write_tree(FILES)
    assert releases.commit(plan(releases.write_tree(FILES), first, step=1)) == lost
    releases.drop_candidate("default", 1)
    return first


@pytest.mark.parametrize(
    "command",
    [
        "gc --quiet --prune=now",
        "gc --quiet",
        "repack -a -d -q",
        "repack -a -d -q --write-midx",
        "pack-refs --all",
    ],
)
def test_what_somebody_pruned_meanwhile_is_written_again(releases: GitReleases, command: str) -> None:
    """The commands that stay have the deleted packs open, and answer for what is in them."""
    first = published_with_a_lost_candidate(releases)
    git(releases.path, *command.split())
    again = releases.commit(plan(releases.write_tree(FILES), first, step=1))
    releases.publish("default", again, first)
    assert releases.read_tree(again) == FILES
    assert "missing" not in git(releases.path, "fsck", "--full", "--strict")


def test_what_was_pruned_and_not_written_again_is_not_published(releases: GitReleases) -> None:
    first = published_with_a_lost_candidate(releases)
    lost = releases.commit(plan(releases.write_tree(FILES), first, step=1))
    git(releases.path, "gc", "--quiet", "--prune=now")
    with pytest.raises(NotFound):
        releases.publish("default", lost, first)
    with pytest.raises(NotFound):
        releases.keep_candidate("default", 1, lost)
    with pytest.raises(NotFound):
        releases.read_tree(lost)
    assert releases.head("default") == first


def make_old(repository: Path) -> None:
    then = time.time() - THREE_WEEKS_S
    for file in (repository / "objects").rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_written_again_is_as_young_as_what_is_new(
    releases: GitReleases, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git gc` removes what is in no release and older than two weeks."""
    first = releases.commit(plan(releases.write_tree({})))
    releases.publish("default", first, None)
    content = releases.write_tree(FILES)
    monkeypatch.setattr(standing, "AGE_S", 0)  # a `hash-object` that stays renews a pack once
    if packed:
        names = "".join(f"{file.parent.name}{file.name}\n" for file in loose(releases.path))
        pack = ["git", "-C", str(releases.path), "pack-objects", "-q", "objects/pack/pack"]
        subprocess.run(pack, input=names.encode(), check=True, capture_output=True)
        git(releases.path, "prune-packed")
        assert loose(releases.path) == set()
        releases.write_tree(FILES)
    make_old(releases.path)
    assert releases.write_tree(FILES) == content
    git(releases.path, "gc", "--quiet")
    second = releases.commit(plan(content, first, step=1))
    releases.publish("default", second, first)
    assert releases.read_tree(second) == FILES


def test_objects_borrowed_from_elsewhere_may_go(releases: GitReleases, tmp_path: Path) -> None:
    lender = GitReleases(tmp_path / "lender.git")
    lender.keep_candidate("default", 1, lender.commit(plan(lender.write_tree(FILES))))
    git(lender.path, "gc", "--quiet")
    (releases.path / "objects/info").mkdir(exist_ok=True)
    (releases.path / "objects/info/alternates").write_text(f"{lender.path}/objects\n")
    assert releases.write_tree(FILES) == lender.write_tree(FILES)
    assert loose(releases.path) == set()
    lender.drop_candidate("default", 1)
    git(lender.path, "gc", "--quiet", "--prune=now")
    assert releases.read_tree(releases.write_tree(FILES)) == FILES
    lender.close()


def test_a_file_that_is_missing_is_told(releases: GitReleases) -> None:
    content = releases.write_tree(FILES)
    (blob,) = releases._objects.find([f"{content}:reef.json"])
    assert blob is not None
    (releases.path / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(GitFailed, match=f"{blob} missing"):
        releases.read_tree(content)


KILLED = """
import os, sys
from pathlib import Path
from daemon.releases.git import GitReleases
from daemon.releases.standing import Standing
Standing.ask_each = lambda *_: os.kill(os.getpid(), 9)
GitReleases(Path(sys.argv[1])).write_tree({"secret.md": b"Of a release."})
"""


def test_no_contents_stay_of_one_that_was_killed(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    path = tmp_path / "releases.git"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], env=os.environ | {"TMPDIR": str(temporary)}, check=False
    )
    assert done.returncode == -9
    assert list(temporary.iterdir()) == []
    (left,) = [file for file in path.rglob("*") if file.is_file() and file.read_bytes() == b"Of a release."]
    assert [folder.stat().st_mode & 0o777 for folder in (left.parent, left.parent.parent)] == [0o700] * 2
    GitReleases(path).close()
    assert not left.parent.parent.exists()
    with GitReleases(path)._git.scratch() as folder:
        assert folder.parent == left.parent.parent
    assert not folder.exists()


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
        pytest.skip(f"git {version} does not tell of its flushes; 2.36 is the first that does")
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
