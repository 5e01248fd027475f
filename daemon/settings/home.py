"""The home folder: its paths, making it, and what the daemon writes about itself there.

Finding a home and reading `daemon.json` is `reef.home`, which clients use too.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from reef.home import DaemonInfo, find_home, make_home, unwritable


@dataclass(frozen=True, slots=True)
class Home:
    """One home. Its paths exist once the rooms that own them have made them."""

    root: Path

    @classmethod
    def find(cls, cwd: Path | None = None) -> "Home":
        """The home that belongs to `cwd` (default: the working folder)."""
        return cls(find_home(cwd=cwd))

    @property
    def config(self) -> Path:
        return self.root / "reef.toml"

    @property
    def daemon_json(self) -> Path:
        return self.root / "daemon.json"

    @property
    def lock(self) -> Path:
        return self.root / "daemon.lock"

    @property
    def token(self) -> Path:
        return self.root / "token"

    @property
    def database(self) -> Path:
        return self.root / "reef.db"

    @property
    def releases(self) -> Path:
        return self.root / "releases.git"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def log_file(self) -> Path:
        return self.logs / "daemon.log"

    @property
    def engines(self) -> Path:
        return self.root / "engines"

    @property
    def episodes(self) -> Path:
        return self.root / "episodes"

    @property
    def adapters(self) -> Path:
        return self.root / "adapters"

    def create(self) -> None:
        """Make the folder (mode 0700) and its `logs/`; what is there already stays.

        Raises:
            ReefError: it cannot be written to.
        """
        make_home(self.root)

    def write_daemon(self, info: DaemonInfo) -> None:
        """Publish where the daemon answers; a reader sees the old file or the new one, never half."""
        write_atomically(self.daemon_json, json.dumps(asdict(info), indent=2) + "\n", mode=0o600)

    def forget_daemon(self) -> None:
        """Remove `daemon.json`; the last thing a daemon does before it frees the lock."""
        self.daemon_json.unlink(missing_ok=True)


def write_atomically(path: Path, text: str, *, mode: int) -> None:
    """Write `text` to a new file with `mode` beside `path` and rename it over `path`, durably.

    Raises:
        ReefError: the folder cannot be written to.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise unwritable(path.parent, error) from error
