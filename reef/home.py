"""Where a Reef lives on this machine, and how a client finds its daemon.

Owns: finding the home and the project file, making the folder, reading `daemon.json` and the token, asking
whether a daemon holds the home. Does not own: what the daemon writes there (`daemon.settings`). Standard
library only, because every command of `reef` loads it.

A home is `REEF_HOME`, else `.reef/` beside a `reef.toml` found upwards from the working folder, else
`~/.reef`.
"""

import errno
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from reef._url import http_address
from reef.errors import DaemonUnreachable, ReefError

PROJECT_FILE = "reef.toml"
START_HINT = "start it with `reef up`"


@dataclass(frozen=True, slots=True)
class DaemonInfo:
    """What a running daemon says of itself in `daemon.json`.

    `started_at` is RFC 3339 in UTC; `boot` changes at each start.
    """

    pid: int
    url: str
    version: str
    started_at: str
    boot: str


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send requests, and with which token (None: the daemon asks for none)."""

    url: str
    token: str | None = field(repr=False)


def find_project_file(cwd: Path | None = None) -> Path | None:
    """The nearest `reef.toml` in `cwd` (default: the working folder) or above it."""
    folder = (cwd or Path.cwd()).absolute()
    for place in (folder, *folder.parents):
        if (found := place / PROJECT_FILE).is_file():
            return found
    return None


def expanded(path: Path) -> Path:
    """With the user's folder where it begins with `~`. A `~name` that is nobody's stays as it is."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def find_home(environ: Mapping[str, str] = os.environ, cwd: Path | None = None) -> Path:
    """The folder of the home that belongs here. It need not exist yet.

    A `reef.toml` that lies in a home itself (`<home>/reef.toml`) names that home, not one inside it.
    """
    if given := environ.get("REEF_HOME"):
        return expanded(Path(given)).absolute()
    default = expanded(Path("~/.reef"))
    project = find_project_file(cwd)
    if project is None or project.parent == default:
        return default
    return project.parent if project.parent.name == ".reef" else project.parent / ".reef"


def make_home(home: Path) -> None:
    """Make the folder (mode 0700) and its `logs/`; what is there already stays.

    Raises:
        ReefError: it cannot be written to.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "logs").mkdir(mode=0o700, exist_ok=True)
        ignore = home / ".gitignore"  # a home may lie inside a project's work tree
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
    except OSError as error:
        raise unwritable(home, error) from error
    if not os.access(home, os.W_OK | os.X_OK):
        raise unwritable(home, PermissionError(errno.EACCES, "Permission denied"))


def unwritable(home: Path, error: OSError) -> ReefError:
    """The error for a home, or a folder in it, that refuses to be written to."""
    return ReefError(
        f"the home {home} cannot be written\n{error.strerror or error}",
        hint=f"{way_to_write(error, 'make it writable')}, or set REEF_HOME to another folder",
    )


def way_to_write(error: OSError, otherwise: str) -> str:
    """What to do where something could not be written: `otherwise`, but for a full disk."""
    return "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else otherwise


def is_running(home: Path) -> bool:
    """Whether a daemon holds the home's lock. The kernel frees it when the daemon dies, however it dies."""
    try:
        descriptor = os.open(home / "daemon.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def lock_holder(home: Path) -> int | None:
    """The process that holds the home's lock; None when none does, or it has not said so yet."""
    if not is_running(home):
        return None
    try:
        return int((home / "daemon.lock").read_text("ascii")) or None
    except (OSError, ValueError):
        return None


def read_daemon(home: Path) -> DaemonInfo | None:
    """The running daemon of this home, or None. A `daemon.json` that a killed daemon left is ignored.

    Raises:
        ReefError: the file is there, the lock is held, and what it says is not to be understood.
    """
    if not is_running(home):
        return None
    file = home / "daemon.json"
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return None  # it has the lock and is still starting
    except OSError as error:
        raise ReefError(f"cannot read {file}\n{error.strerror}", hint="check who owns the home") from error
    return _parse(file, text)


def read_token(home: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """`REEF_TOKEN`, else what the home's `token` file holds, else None."""
    if given := environ.get("REEF_TOKEN"):
        return given
    try:
        return (home / "token").read_text("utf-8").strip() or None
    except OSError:
        return None


def token_for(url: str, home: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """The token to show at `url`. The home's own never leaves this machine; `REEF_TOKEN` goes anywhere.

    Raises:
        Invalid: `url` is no http address.
    """
    if is_loopback(http_address(url, hint="check REEF_URL").hostname or ""):
        return read_token(home, environ)
    return environ.get("REEF_TOKEN") or None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def find_daemon(
    environ: Mapping[str, str] = os.environ, cwd: Path | None = None, home: Path | None = None
) -> Address:
    """`REEF_URL` and `REEF_TOKEN`, else the running daemon of `home` (default: the home found from `cwd`).

    Raises:
        DaemonUnreachable: nothing runs here.
    """
    where = home or find_home(environ, cwd)
    if home is None and (url := environ.get("REEF_URL")):
        return Address(url.rstrip("/"), token_for(url, where, environ))
    daemon = read_daemon(where)
    if daemon is None:
        raise DaemonUnreachable(f"no Reef daemon runs in {where}", hint=START_HINT)
    return Address(daemon.url, read_token(where, environ))


def stale_url(url: str, environ: Mapping[str, str] = os.environ, cwd: Path | None = None) -> str | None:
    """What to say where `REEF_URL` brought a client to `url` although the daemon of its home is elsewhere."""
    if not url or environ.get("REEF_URL", "").rstrip("/") != url:
        return None
    try:
        daemon = read_daemon(find_home(environ, cwd))
    except ReefError:
        return None
    if daemon is None or daemon.url == url:
        return None
    return f'REEF_URL names {url}, but the daemon of this home is at {daemon.url}: run eval "$(reef env)"'


def _parse(file: Path, text: str) -> DaemonInfo:
    try:
        data: dict[str, Any] = json.loads(text)
        info = DaemonInfo(**{name: data[name] for name in DaemonInfo.__slots__})
    except (ValueError, KeyError, TypeError) as error:
        raise ReefError(
            f"{file} is damaged", hint="stop the daemon and start it again: `reef down && reef up`"
        ) from error
    kinds_hold = isinstance(info.pid, int) and all(
        isinstance(value, str) for value in (info.url, info.version, info.started_at, info.boot)
    )
    if not kinds_hold or info.pid <= 0 or not info.url.startswith(("http://", "https://")):
        raise ReefError(
            f"{file} is damaged", hint="stop the daemon and start it again: `reef down && reef up`"
        )
    return info
