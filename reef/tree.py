"""The harness tree as data: entries and the mutations that change them.

What may be in a tree, how it becomes files and how mutations apply is `daemon.harness`;
here are only the values that recipes, adapters and the daemon hand to each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EntryKind = Literal["rules", "skill", "agent_command", "config", "code_extension", "examples"]
ENTRY_KINDS: tuple[EntryKind, ...] = (
    "rules",
    "skill",
    "agent_command",
    "config",
    "code_extension",
    "examples",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree. `name` is its kind, `config` what that kind needs."""

    id: str
    name: EntryKind
    config: Mapping[str, Any]
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class HarnessTree:
    """The entries of one release, in the order in which they are rendered."""

    entries: tuple[Entry, ...] = ()
    requires: tuple[str, ...] = ()

    def get(self, entry_id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.id == entry_id), None)

    @property
    def active(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if not entry.disabled)


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change to one entry. An option left out (None) stays as it is."""

    op: Literal["create", "update", "remove"]
    id: str
    name: EntryKind | None = None
    config: Mapping[str, Any] | None = None
    disabled: bool | None = None

    def to_wire(self) -> dict[str, Any]:
        options = {
            key: value
            for key, value in (("name", self.name), ("config", self.config), ("disabled", self.disabled))
            if value is not None
        }
        return {"op": self.op, "id": self.id} | ({"options": options} if options else {})


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a recipe brings to the gate: changes to the served tree, and why.

    `reason` is a sentence for people; `proposer` names which part of the recipe made it.
    """

    mutations: tuple[Mutation, ...]
    reason: str
    proposer: str = ""
    title: str = ""
    notes: tuple[str, ...] = field(default=())
