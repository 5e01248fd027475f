"""Git commands that stay and are asked line by line: starting one costs more than what it is asked for.

Owns: the life of such a child. It starts when it is first asked and ends when nobody has asked for a while;
it ends by itself when its stdin closes, so that a daemon that was killed leaves none. No child stays that
could answer from memory: git keeps a pack open that was deleted, and renews the age of one only once.
"""

import logging
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

from daemon.releases.plumbing import GitFailed, Plumbing

if TYPE_CHECKING:
    from git import Git

IDLE_S = 20.0
"""A child that nobody asks for this long ends."""
AGE_S = 3600.0
"""A child ends after this long even when it is asked all the time. Git prunes what is two weeks old."""
_END_S = 5.0
_AT_ONCE = 64
"""Questions that are sent before their answers are read. As many answers fit into the smallest pipe, of 4 KB:
else both sides could wait for each other."""

log = logging.getLogger("reef.releases")


class Standing:
    """One git command that answers each question on its stdin with lines. Any thread may ask."""

    def __init__(self, git: Plumbing, *arguments: str) -> None:
        self._git = git
        self._arguments = arguments
        self._lock = threading.Lock()
        self._child: Git.AutoInterrupt | None = None
        self._timer: threading.Timer | None = None
        self._packs: frozenset[Path] | None = None
        self._begun_at = self._asked_at = 0.0

    def ask(self, question: str, lines: int = 1) -> list[str]:
        """The `lines` lines with which it answers.

        A child that went away without a word after it last answered is started again, and asked once more.

        Raises:
            GitFailed: it ended instead of answering.
            Unavailable: there is no git.
        """
        asked = question.encode()
        with self._lock:
            if self._is_stale():
                self._end()
            known = self._child is not None
            try:
                return self._ask(asked, lines)
            except GitFailed as failure:
                if failure.stderr or not known:
                    raise
                return self._ask(asked, lines)

    def ask_each(self, questions: Sequence[str]) -> list[str]:
        """The one line that answers each of `questions`, which are lines. Raises what `ask` raises."""
        answers: list[str] = []
        for start in range(0, len(questions), _AT_ONCE):
            some = questions[start : start + _AT_ONCE]
            answers += self.ask("".join(f"{question}\n" for question in some), len(some))
        return answers

    def end(self) -> None:
        """End the child, if there is one. Whoever asks again starts another."""
        with self._lock:
            self._end()

    def _is_stale(self) -> bool:
        """Whether the child could answer by what it remembers and is no longer so."""
        return (
            self._packs is None
            or self._packs != _packs(self._git.path)
            or time.monotonic() - self._begun_at > AGE_S
        )

    def _ask(self, question: bytes, lines: int) -> list[str]:
        child = self._child or self._begin()
        try:
            answers = _converse(child, question, lines)
        except BaseException:  # what it says next would be taken for the answer to another question
            self._end()
            raise
        if len(answers) < lines:
            raise self._git.failure(self._arguments[0], self._end())
        self._asked_at = time.monotonic()
        if said := child.stderr.read():  # emptied, or the child would wait for us once the pipe is full
            log.debug("git %s: %s", self._arguments[0], said.decode("utf-8", "replace").rstrip())
        return answers

    def _begin(self) -> "Git.AutoInterrupt":
        self._packs = _packs(self._git.path)
        child = self._git.start(*self._arguments)
        os.set_blocking(child.stderr.fileno(), False)
        self._child = child
        self._begun_at = self._asked_at = time.monotonic()
        self._rest_in(IDLE_S, child)
        return child

    def _end(self) -> str:
        """End the child and return what it complained of."""
        child, self._child = self._child, None
        if child is None:
            return ""
        if self._timer is not None:
            self._timer.cancel()
        with suppress(BrokenPipeError):
            child.stdin.close()
        assert child.proc is not None
        try:
            child.proc.wait(_END_S)
        except TimeoutExpired:
            child.proc.kill()
            child.proc.wait()
        said = child.stderr.read() or b""
        child.stdout.close()
        child.stderr.close()
        return str(said, "utf-8", "replace")

    def _rest_in(self, seconds: float, child: "Git.AutoInterrupt") -> None:
        self._timer = threading.Timer(seconds, self._rest, [child])
        self._timer.daemon = True
        self._timer.start()

    def _rest(self, child: "Git.AutoInterrupt") -> None:
        """End `child` where nobody has asked it for long enough; else look again later."""
        with self._lock:
            if child is not self._child:
                return
            left = self._asked_at + IDLE_S - time.monotonic()
            if left > 0:
                self._rest_in(left, child)
            else:
                self._end()


def _packs(repository: Path) -> frozenset[Path] | None:
    """Its packs, whose names say what is in them; None where objects may also be elsewhere."""
    try:
        packs = frozenset((repository / "objects" / "pack").iterdir())
        borrows = (repository / "objects" / "info" / "alternates").exists()
    except OSError:
        return None
    return None if borrows else packs


def _converse(child: "Git.AutoInterrupt", question: bytes, lines: int) -> list[str]:
    """Its answer; fewer lines than that when it ended."""
    answers: list[str] = []
    with suppress(BrokenPipeError):
        child.stdin.write(question)
        child.stdin.flush()
        while len(answers) < lines and (line := child.stdout.readline()).endswith(b"\n"):
            answers.append(line[:-1].decode())
    return answers
