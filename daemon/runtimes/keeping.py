"""Keeping a model's file whole or not at all: it comes into a folder of its own, and is moved when it is
right."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daemon.runtimes.gguf import is_gguf
from reef.errors import Unavailable

FETCH_TIMEOUT_S = 900
"""Nothing that a fetch writes may stand still for longer."""
_UNFINISHED = ".fetch-"

Progress = Callable[[float], None]
"""Called with the megabytes that have come so far."""


def silent(megabytes: float) -> None:
    """No progress."""


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A folder beside `target` for what is not finished; it goes when this ends, however that is.

    Raises:
        Unavailable: the disk is full or cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        with tempfile.TemporaryDirectory(
            dir=target.parent, prefix=_UNFINISHED, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)
    except OSError as error:
        raise Unavailable(
            f"the model cannot be kept in {target.parent}: {error.strerror or error}",
            hint="free some space, or set XDG_DATA_HOME",
        ) from error


def keep(file: Path, target: Path, *, sha256: str | None, source: str) -> Path:
    """Move what came from `source` into its place.

    Raises:
        Unavailable: it is no GGUF file, or not the one that was expected. Nothing is kept then.
    """
    if sha256 is not None and (found := file_sha256(file)) != sha256:
        raise Unavailable(
            f"{source} brought another file than expected (sha256 {found[:12]}...)",
            hint=f"expected {sha256[:12]}...; try again, or check where the checksum is from",
        )
    if not is_gguf(file):
        raise Unavailable(f"{source} brought no GGUF file", hint="give the source of a .gguf model")
    return file.replace(target)


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _sweep(folder: Path) -> None:
    """Remove what a fetch that was killed left behind: nothing in it has changed for long."""
    for left in folder.glob(f"{_UNFINISHED}*"):
        with suppress(FileNotFoundError):
            places = [left, *(Path(place, name) for place, _, names in os.walk(left) for name in names)]
            if time.time() - max(file.stat().st_mtime for file in places) > FETCH_TIMEOUT_S:
                shutil.rmtree(left, ignore_errors=True)
