"""What serving needs of its neighbours: somewhere to keep exchanges, and what each scenario serves."""

from typing import Protocol

from daemon.records.draft import Draft
from daemon.serving.served import Served
from reef.errors import Unavailable


class RecordAppender(Protocol):
    @property
    def failed(self) -> Unavailable | None:
        """What the store failed with, until it is shown to take writes again."""

    async def ready(self) -> None:
        """See whether it does by now, every few seconds. Raises `Unavailable` where it does not."""

    def opened(self, receipt: str, scenario: str) -> None:
        """A receipt goes out before its record is stored: a report may name it already."""

    def closed(self, receipt: str) -> None:
        """The exchange is over, stored or not."""

    async def append(self, draft: Draft) -> None:
        """Store an exchange; it is durable when this returns. Raises ReefError when it cannot be."""

    async def measure(self, draft: Draft) -> None:
        """Fill in what an exchange used that could not be stored."""


class ScenarioSource(Protocol):
    async def serve(self, scenario: str, *, start: str | None = None) -> Served:
        """The release at the scenario's head. A new name makes the scenario, from release `start` if given.

        Raises:
            NotFound: scenarios are not made by requests here.
            Conflict: the name differs from another in case only, or `start` is not where it started.
        """

    async def default(self, scenario: str) -> Served:
        """What a new scenario of this name would serve, as no release: for when none can be made."""

    async def pinned(self, scenario: str, conversation: str) -> Served | None:
        """The release that the records of this conversation name; None where there are none."""
