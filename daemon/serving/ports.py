"""What serving needs of its neighbours: somewhere to keep exchanges, and what each scenario serves."""

from typing import Protocol

from daemon.records.draft import Draft
from daemon.serving.served import Served


class RecordAppender(Protocol):
    def opened(self, receipt: str, scenario: str) -> None:
        """A receipt goes out before its record is stored: a report may name it already."""

    def closed(self, receipt: str) -> None:
        """The exchange is over, stored or not."""

    async def append(self, draft: Draft) -> None:
        """Store an exchange; it is durable when this returns. Raises ReefError when it cannot be."""


class ScenarioSource(Protocol):
    async def serve(self, scenario: str, *, start: str | None = None) -> Served:
        """The release at the scenario's head. A new name makes the scenario, from release `start` if given.

        Raises:
            NotFound: scenarios are not made by requests here.
            Conflict: the name differs from another in case only, or `start` is not where it started.
        """

    async def pinned(self, scenario: str, conversation: str) -> Served | None:
        """The release that the records of this conversation name; None where there are none."""
