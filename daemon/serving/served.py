"""What a scenario serves right now, as the hot path needs it."""

from dataclasses import dataclass

from daemon.wire.prefix import Prefix


@dataclass(frozen=True, slots=True)
class Served:
    """One release of one scenario, ready to be put in front of a request.

    `prefix` is None where the daemon injects nothing (an agent installs files instead).
    """

    scenario: str
    release_id: str
    content_id: str
    prefix: Prefix | None = None
