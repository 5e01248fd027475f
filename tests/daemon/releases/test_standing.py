"""Git commands that stay: they come back when they are killed, go when nobody asks, and never mix answers."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from daemon.releases import standing
from daemon.releases.git import GitReleases
from daemon.releases.plumbing import GitFailed, Plumbing
from daemon.releases.standing import Standing
from tests.daemon.releases.test_git import FILES, plan
from tests.e2e.running import wait_for
from tests.processes import is_running, with_words


@pytest.fixture
def finder(releases: GitReleases) -> Iterator[Standing]:
    command = Standing(Plumbing(releases.path), "cat-file", "--batch-check=%(objectname)")
    yield command
    command.end()


def children(releases: GitReleases) -> list[int]:
    return with_words("git", str(releases.path))


def pid_of(command: Standing) -> int:
    assert command._child is not None
    return int(command._child.pid)


def test_the_children_are_few_and_stay(releases: GitReleases) -> None:
    head = None
    seen = set()
    for step in range(4):
        content = releases.write_tree(FILES | {"a.md": b"%d" % step})
        made = releases.commit(plan(content, head, step=step))
        releases.publish("default", made, head)
        head = made
        seen |= set(children(releases))
    assert len(seen) == 5
    releases.close()
    assert children(releases) == []
    assert releases.head("default") == head


def test_killed_at_any_time_they_start_again(releases: GitReleases) -> None:
    first = releases.commit(plan(releases.write_tree({})))
    releases.publish("default", first, None)
    for pid in children(releases):
        os.kill(pid, signal.SIGKILL)
    content = releases.write_tree(FILES)
    for pid in children(releases):
        os.kill(pid, signal.SIGKILL)
    second = releases.commit(plan(content, first, step=1))
    for pid in children(releases):
        os.kill(pid, signal.SIGKILL)
    releases.publish("default", second, first)
    assert releases.head("default") == second
    assert releases.read_tree(second) == FILES


def test_one_that_fails_says_why_and_is_not_asked_again(releases: GitReleases) -> None:
    command = Standing(Plumbing(releases.path), "update-ref", "--stdin")
    assert command.ask("start\nabort\n", lines=2) == ["start: ok", "abort: ok"]
    with pytest.raises(GitFailed, match="nonsense"):
        command.ask("nonsense\n")
    assert command._child is None
    assert command.ask("start\nabort\n", lines=2) == ["start: ok", "abort: ok"]
    command.end()


def test_one_that_cannot_run_is_not_started_for_ever(releases: GitReleases) -> None:
    command = Standing(Plumbing(releases.path), "no-such-command")
    with pytest.raises(GitFailed, match="no-such-command"):
        command.ask("x\n")


def test_one_that_nobody_asks_ends(finder: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "IDLE_S", 0.2)
    assert finder.ask("HEAD\n") == ["HEAD missing"]
    pid = pid_of(finder)
    wait_for(lambda: not is_running(pid) or None, "the end of an idle child", seconds=10)
    assert finder.ask("HEAD\n") == ["HEAD missing"]


def test_one_that_is_old_ends_though_it_is_asked(finder: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    assert finder.ask("HEAD\n") == ["HEAD missing"]
    pid = pid_of(finder)
    assert finder.ask("HEAD\n") == ["HEAD missing"]
    assert pid_of(finder) == pid
    monkeypatch.setattr(standing, "AGE_S", 0)
    assert finder.ask("HEAD\n") == ["HEAD missing"]
    assert not is_running(pid)
    assert pid_of(finder) != pid


def test_neither_questions_nor_complaints_fill_a_pipe(releases: GitReleases, finder: Standing) -> None:
    content = releases.write_tree({"a": b"1"})
    (blob,) = releases._objects.find([f"{content}:a"])
    wrong = [f"{blob}^{{tree}}", f"{content}^{{commit}}", "f" * 40, content] * 1000
    answers = finder.ask_each(wrong)
    assert answers == [f"{wrong[0]} missing", f"{wrong[1]} missing", f"{wrong[2]} missing", content] * 1000


def test_no_thread_stays_when_the_child_went(releases: GitReleases, finder: Standing) -> None:
    """Where objects may be elsewhere each question has a child of its own."""
    (releases.path / "objects" / "info" / "alternates").write_text(f"{releases.path}-elsewhere\n")
    before = set(threading.enumerate())
    for _ in range(5):
        assert finder.ask("HEAD\n") == ["HEAD missing"]
    wait_for(lambda: len(set(threading.enumerate()) - before) == 1 or None, "one timer", seconds=10)
    finder.end()
    wait_for(lambda: not set(threading.enumerate()) - before or None, "no timer", seconds=10)
