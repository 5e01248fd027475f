"""Reef: the public Python API.

Owns: the version, `Client`/`AsyncClient`, the plug-in contracts (`reef.recipe`, `reef.evaluator`,
`reef.runtime`) and the types that cross rooms (`reef.tree`, `reef.feedback`, `reef.tasks`).
Does not own: anything that touches a disk, a socket server or a database; that is `daemon`.

Importing `reef` stays cheap: a name is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reef.async_client import AsyncClient
    from reef.client import Client
    from reef.errors import ReefError

__all__ = ["AsyncClient", "Client", "ReefError", "__version__"]

_HOMES = {"Client": "reef.client", "AsyncClient": "reef.async_client", "ReefError": "reef.errors"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'reef' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
