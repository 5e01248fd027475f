"""One bare git repository and the way git is called on it.

Owns: the environment and settings git runs with, opening a repository (and clearing what a crash left),
and turning git's failures into our errors. Does not own what is stored in it.
"""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, BinaryIO, cast

from reef.errors import ReefError, Unavailable

if TYPE_CHECKING:
    from git import Git

LOCK_GRACE_S = 2.0
"""A lock file older than this when a repository is opened was left by a crash."""

_SCRATCH = "reef-new"

_SETTINGS = {
    "core.fsync": "objects,derived-metadata,reference",
    "core.fsyncMethod": "fsync",
    "core.filesRefLockTimeout": "2000",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "gc.auto": "0",
    "core.autocrlf": "false",
    "core.quotePath": "false",
    "core.warnAmbiguousRefs": "false",
}
_NAME, _EMAIL = "Reef", "reef@localhost"
IDENTITY = f"{_NAME} <{_EMAIL}>"
"""Author and committer of every release."""

_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": _NAME,
    "GIT_AUTHOR_EMAIL": _EMAIL,
    "GIT_COMMITTER_NAME": _NAME,
    "GIT_COMMITTER_EMAIL": _EMAIL,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_DEFAULT_HASH": "sha1",
    "GIT_TERMINAL_PROMPT": "0",
}


class GitFailed(Unavailable):
    """A git command ended with a failure that has no better name. `stderr` is what it said."""

    def __init__(self, message: str, *, hint: str = "", stderr: str = "") -> None:
        super().__init__(message, hint=hint)
        self.stderr = stderr


class Plumbing:
    """Runs git on the bare repository at `path`, in a clean environment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._git: Git | None = None

    def open(self) -> None:
        """Make the repository if it is not there; clear lock and scratch files that a crash left.

        Raises:
            Unavailable: git is missing, or the folder cannot be written.
        """
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / "HEAD").is_file():
            self.run("init", "--quiet", "--bare", "--template=", str(self.path))
        _clear_locks(self.path)
        shutil.rmtree(self.path / _SCRATCH, ignore_errors=True)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A new folder that only this user can read, gone afterwards; `open` removes it after a crash.

        Raises:
            Unavailable: it cannot be made, or the system refuses what the caller does there.
        """
        with writing(self.path):
            (self.path / _SCRATCH).mkdir(mode=0o700, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="", dir=self.path / _SCRATCH) as folder:
                yield Path(folder)

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """What `git ARGUMENTS` wrote to stdout, unchanged.

        Raises:
            GitFailed: it ended with another status than 0.
            Unavailable: there is no git.
        """
        git = self._layer()
        from git.exc import GitCommandError, GitCommandNotFound

        try:
            with _spooled(stdin) as source:
                found = git.execute(
                    self._command(arguments),
                    istream=source,
                    env=_ENVIRONMENT,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                )
        except GitCommandNotFound:
            raise _git_missing() from None
        except GitCommandError as error:
            said = error.stderr.strip().removeprefix("stderr:").strip().strip("'")
            raise self.failure(arguments[0], said) from None
        return found if isinstance(found, bytes) else bytes(str(found), "utf-8")

    def text(self, *arguments: str) -> str:
        """As `run`, decoded and without the last newline."""
        return self.run(*arguments).decode("utf-8", "replace").rstrip("\n")

    def start(self, *arguments: str) -> "Git.AutoInterrupt":
        """Start `git ARGUMENTS` with pipes for its stdin, stdout and stderr.

        Raises:
            Unavailable: there is no git.
        """
        git = self._layer()
        from git.exc import GitCommandNotFound

        try:
            return git.execute(self._command(arguments), istream=PIPE, env=_ENVIRONMENT, as_process=True)
        except GitCommandNotFound:
            raise _git_missing() from None

    def failure(self, command: str, said: str) -> GitFailed:
        """The error of a command that ended with `said` on its stderr."""
        lines = said.strip().splitlines()
        look = f"look at the repository with: git --git-dir={self.path} fsck"
        return GitFailed(
            f"git {command} failed: {lines[-1] if lines else 'no message'}",
            hint="free some space" if os.strerror(errno.ENOSPC) in said else look,
            stderr=said,
        )

    def _command(self, arguments: Sequence[str]) -> list[str]:
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        options = ("--literal-pathspecs", "--no-replace-objects", f"--git-dir={self.path}")
        return [*_foreign(), "git", *settings, *options, *arguments]

    def _layer(self) -> "Git":
        if self._git is None:
            try:
                from git import Git
            except ImportError:  # GitPython looks for the git program when it is imported
                raise _git_missing() from None
            self._git = Git(str(self.path))
        return self._git


def _spooled(data: bytes) -> BinaryIO:
    """An open file to read `data` from: a pipe could fill up while git writes its answer."""
    with writing(tempfile.gettempdir()):
        source = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        source.write(data)
        source.seek(0)
        return cast(BinaryIO, source)


@contextmanager
def writing(place: str | Path) -> Iterator[None]:
    """Raise `Unavailable` where the system refuses to write in `place`."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"cannot write {place}: {error.strerror}",
            hint="check the rights and free space of that folder",
            retry_after_s=5,
        ) from None


def _foreign() -> list[str]:
    """A prefix that takes git's own variables away, where there are any besides those we set.

    A daemon started from a git hook, or from a shell with `GIT_DIR` set, must not notice; GitPython
    can add variables but not remove them.
    """
    names = [
        name
        for name in os.environ
        if name.startswith("GIT_") and name not in _ENVIRONMENT and not name.startswith("GIT_PYTHON_")
    ]
    return ["env", *(part for name in names for part in ("-u", name))] if names else []


def _git_missing() -> ReefError:
    return Unavailable("git was not found", hint="install it, for example: sudo apt-get install git")


def _clear_locks(path: Path) -> None:
    """Remove lock files of writers that were killed; one still at work gets `LOCK_GRACE_S` to finish."""
    deadline = time.monotonic() + LOCK_GRACE_S
    while locks := [*path.glob("*.lock"), *(path / "refs").rglob("*.lock")]:
        now = time.time()
        for lock in locks:
            try:
                if time.monotonic() >= deadline or now - lock.stat().st_mtime > LOCK_GRACE_S:
                    lock.unlink()
            except FileNotFoundError:
                continue
        time.sleep(0.05)
