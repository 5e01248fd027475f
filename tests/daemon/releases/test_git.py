"""The history in real git: identity, compare-and-swap, what stock git makes of it."""

import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.releases.commits import CommitPlan, commit_message
from daemon.releases.git import GitReleases
from daemon.releases.objects import EMPTY_TREE
from daemon.releases.plumbing import Plumbing
from reef.errors import Conflict, Invalid, NotFound, Refused

WHEN = datetime(2026, 1, 31, 12, 0, 0, 123000, tzinfo=UTC)
FILES = {
    "rules/a.md": "Be brief. Grüße\n".encode(),
    "skills/x/SKILL.md": b"---\r\nname: x\n",
    "reef.json": b"{}\n",
}


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(path), *arguments], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def plan(content: str, parent: str | None = None, *, scenario: str = "default", step: int = 0) -> CommitPlan:
    message = commit_message(
        "Add a rule",
        "Because.",
        scenario=scenario,
        step=step,
        operation="training",
        recipe="r",
        score="0.5 -> 1",
    )
    return CommitPlan(scenario, content, parent, message, WHEN)


def test_a_tree_comes_back_byte_for_byte(releases: GitReleases) -> None:
    files = FILES | {"config/.gitattributes": b"* text eol=crlf\n", "b.bin": bytes(range(256)), "empty": b""}
    content = releases.write_tree(files)
    assert releases.read_tree(content) == files
    assert releases.files(content) == tuple(sorted(files))
    assert releases.write_tree(dict(reversed(files.items()))) == content
    assert releases.write_tree({}) == EMPTY_TREE
    assert releases.read_tree(EMPTY_TREE) == {}
    assert not list(releases.path.glob("index*"))


def test_a_repeated_commit_has_the_same_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = set()
    for name in ("one", "two"):
        releases = GitReleases(tmp_path / f"{name}.git")
        content = releases.write_tree(FILES)
        ids |= {releases.commit(plan(content)), releases.commit(plan(content))}
        monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody else")
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
        monkeypatch.setenv("GIT_CONFIG_KEY_0", "i18n.commitEncoding")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", "latin1")
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
        monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
        monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert len(ids) == 1


def test_publish_is_a_compare_and_swap(releases: GitReleases) -> None:
    first = releases.commit(plan(releases.write_tree({})))
    second = releases.commit(plan(releases.write_tree(FILES), first, step=1))
    assert releases.head("default") is None
    releases.publish("default", first, None)
    releases.publish("default", first, None)
    releases.publish("default", second, first)
    releases.publish("default", second, first)
    releases.publish("default", first, None)
    assert releases.head("default") == second
    rival = releases.commit(plan(releases.write_tree({"a": b"1"}), first, step=2))
    with pytest.raises(Conflict, match="stale head"):
        releases.publish("default", rival, first)
    with pytest.raises(NotFound):
        releases.publish("default", "f" * 40, second)
    with pytest.raises(NotFound):
        releases.publish("default", "--help", second)
    assert releases.history(second) == [second, first]
    assert releases.content_id(second) == releases.write_tree(FILES)


def test_a_name_that_reads_as_a_commit_is_a_name(releases: GitReleases) -> None:
    """Git takes `NAME-gDIGITS` for what `git describe` says of a commit."""
    first = releases.commit(plan(releases.write_tree({})))
    releases.publish("default", first, None)
    second = releases.commit(plan(releases.write_tree(FILES), first, step=1))
    for name in (f"team-g{first[:8]}", f"x-1-g{first}", first, first[:8], "default-g0000"):
        assert releases.head(name) is None
        releases.keep_candidate(name, 1, second)
        assert releases.candidates(name) == {1: second}
        assert releases.head(name) is None
        releases.publish(name, second, None)
        assert releases.head(name) == second
    assert releases.head("default") == first
    git(releases.path, "tag", "refs/heads/elsewhere", first)
    assert releases.head("elsewhere") is None


def test_replacing_an_object_by_hand_changes_no_release(releases: GitReleases) -> None:
    first = releases.commit(plan(releases.write_tree(FILES)))
    other = releases.commit(plan(releases.write_tree({}), step=1))
    git(releases.path, "replace", first, other)
    releases.close()
    assert releases.read_tree(first) == FILES


def test_stock_git_reads_the_history(releases: GitReleases, tmp_path: Path) -> None:
    first = releases.commit(plan(releases.write_tree({}), scenario="one"))
    second = releases.commit(plan(releases.write_tree(FILES), first, scenario="one", step=1))
    releases.publish("one", first, None)
    releases.publish("two", first, None)
    releases.publish("one", second, first)
    releases.keep_candidate("one", 2, releases.commit(plan(releases.write_tree({"x": b""}), second)))
    assert git(releases.path, "symbolic-ref", "HEAD").strip() == "refs/heads/one"
    git(tmp_path, "clone", "--quiet", str(releases.path), "clone")
    assert git(tmp_path / "clone", "log", "--format=%H").split() == [second, first]
    assert (tmp_path / "clone/rules/a.md").read_bytes() == FILES["rules/a.md"]
    trailers = git(
        tmp_path / "clone", "log", "-1", "--format=%(trailers:key=Reef-Step,valueonly)%an <%ae> %at"
    )
    assert trailers.split("\n")[:2] == ["1", ""] or trailers.split() == [
        "1",
        "Reef",
        "<reef@localhost>",
        "1769860800",
    ]
    assert [line for line in git(releases.path, "fsck").splitlines() if not line.startswith("dangling")] == []


def test_candidates_tags_and_archive(releases: GitReleases) -> None:
    first = releases.commit(plan(releases.write_tree({})))
    lost = releases.commit(plan(releases.write_tree(FILES), first, step=1))
    releases.publish("default", first, None)
    releases.publish("other", first, None)
    releases.keep_candidate("default", 1, first)
    releases.keep_candidate("default", 1, lost)
    releases.keep_candidate("default", 1, lost)
    releases.tag("default", "good", first)
    with pytest.raises(Conflict):
        releases.tag("default", "good", lost)
    for name in ("HEAD", "beef", "a/b", "-x", "step:1", "a.lock", ""):
        with pytest.raises(Invalid):
            releases.tag("default", name, first)
    assert releases.candidates("default") == {1: lost}
    assert releases.tags("default") == {"good": first}
    archived = releases.archive("default")
    assert len(archived) == 3
    assert all(name.startswith("refs/reef/archived/default/") for name in archived)
    assert releases.archive("default") == ()
    assert (releases.head("default"), releases.candidates("default")) == (None, {})
    assert releases.scenarios() == ("other",)
    assert git(releases.path, "symbolic-ref", "HEAD").strip() == "refs/heads/other"
    releases.publish("default", first, None)
    assert len(releases.archive("default")) == 1
    releases.drop_candidate("default", 9)


def test_diff(releases: GitReleases) -> None:
    before = releases.write_tree({"rules/a.md": b"one\n", "b": b"1\n"})
    after = releases.write_tree({"rules/a.md": b"two\n", "b": b"2\n"})
    commit = releases.commit(plan(after))
    text = releases.diff(before, commit)
    assert "-one\n+two\n" in text
    assert "--- a/rules/a.md" in text
    assert "rules" not in releases.diff(before, after, paths=["b"])
    assert "+two" in releases.diff(None, after)
    assert releases.diff(after, commit) == ""


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../b",
        "a//b",
        "./a",
        ".git/hooks/x",
        "a/.GIT",
        "git~1/x",
        "a\\b",
        "a\0b",
        "a\nb",
        "",
        "a/",
        "con",
        "a/NUL.md",
        "x.",
        " x",
        "e\u0301",
        "a\u200bb",
        "x" * 300,
        "a:b",
        "a\ud800",
    ],
)
def test_hostile_names_are_refused(releases: GitReleases, path: str) -> None:
    with pytest.raises(Refused) as caught:
        releases.write_tree({path: b""})
    assert caught.value.rule == "path"


@pytest.mark.parametrize("pair", [("a", "A"), ("a", "a/b"), ("A/b", "a"), ("straße", "STRASSE")])
def test_colliding_names_are_refused(releases: GitReleases, pair: tuple[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        releases.write_tree(dict.fromkeys(pair, b""))
    assert caught.value.rule == "path-collision"


@pytest.mark.parametrize("name", ["a.lock", "HEAD", "a/b", "-a", "a..b", ".a"])
def test_a_name_that_git_would_refuse_is_refused_by_us(releases: GitReleases, name: str) -> None:
    with pytest.raises(Invalid):
        releases.head(name)


def test_opening_clears_what_a_crash_left(tmp_path: Path) -> None:
    releases = GitReleases(tmp_path / "releases.git")
    commit = releases.commit(plan(releases.write_tree({})))
    releases.publish("default", commit, None)
    lock = releases.path / "refs/heads/default.lock"
    lock.touch()
    os.utime(lock, (time.time() - 60,) * 2)
    again = GitReleases(releases.path)
    again.publish("default", again.commit(plan(again.write_tree(FILES), commit)), commit)


def test_a_message_stays_one_trailer_a_line() -> None:
    text = commit_message(
        "Line one\nline two", "Reef-Score: 9\n\nbody", scenario="s", step=3, operation="training",
        recipe="r\nReef-Step: 9", evidence=["12 units\u2028", "", "13 looks"],
    )  # fmt: skip
    lines = text.splitlines()
    assert lines[0] == "Line one line two"
    assert [line for line in lines if line.startswith("Reef-")] == [
        "Reef-Scenario: s", "Reef-Step: 3", "Reef-Operation: training", "Reef-Recipe: r Reef-Step: 9",
        "Reef-Evidence: 12 units", "Reef-Evidence: 13 looks",
    ]  # fmt: skip
    assert text.endswith("looks\n")


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    git = Plumbing(tmp_path)
    assert git.failure("init", "fatal: cannot write: No space left on device").hint == "free some space"
    assert "fsck" in git.failure("init", "fatal: bad object").hint
