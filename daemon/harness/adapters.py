"""Adapters: what each agent can use of a tree, as the descriptor in its `harness_templates` folder says.

To add an agent: one folder there with an `adapter.toml`.
"""

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from reef.errors import NotFound
from reef.tree import EntryKind


class Install(BaseModel):
    """How the agent's own program is installed, at which pinned version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["npm", "pip", "script"]
    package: str
    version: str


class Adapter(BaseModel):
    """One agent. `kinds` are the entries it can use; `inject`: the daemon puts them in front of requests."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kinds: tuple[EntryKind, ...]
    binary: str | None = None
    trajectory_format: str
    model_bindings: tuple[str, ...] = ()
    install: Install | None = None
    inject: bool = False

    def to_wire(self) -> dict[str, object]:
        """Its row in `GET /reef/harness/adapters`."""
        return self.model_dump(include={"name", "binary", "trajectory_format", "model_bindings", "install"})


@lru_cache(maxsize=1)
def adapters() -> dict[str, Adapter]:
    """Every adapter by name."""
    found = {}
    for folder in sorted(files("harness_templates").iterdir(), key=lambda one: one.name):
        descriptor = folder.joinpath("adapter.toml")
        if descriptor.is_file():
            one = Adapter.model_validate(tomllib.loads(descriptor.read_text("utf-8")))
            found[one.name] = one
    return found


def adapter(name: str) -> Adapter:
    """The adapter with that name.

    Raises:
        NotFound: there is none; the hint lists those that are.
    """
    if name not in adapters():
        raise NotFound(f"there is no adapter `{name[:80]}`", hint=f"there are: {', '.join(adapters())}")
    return adapters()[name]
