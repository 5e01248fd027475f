"""Which upstreams take back what their models thought: not every server of chat completions does."""

import re

from daemon.serving.turn import Turn

REFUSALS = frozenset({400, 422})
"""How servers answer a request of which they do not take a part."""
_KEY = b"reasoning_content"
_WANTED = re.compile(
    rb"missing|pass(?:ed)? (?:it )?back|is required|must (?:be provided|include|contain)", re.IGNORECASE
)
"""Who says so wants more thoughts, not fewer."""


class Thoughts:
    """Remembers, while the daemon runs, by which upstream and model they were refused."""

    def __init__(self) -> None:
        self._refused: set[tuple[str, str | None]] = set()

    def go_to(self, upstream: str, turn: Turn) -> bool:
        """Whether the upstream is sent those of a turn's conversation."""
        return (upstream, turn.facts.model) not in self._refused

    def refused_by(self, upstream: str, turn: Turn) -> None:
        """The upstream answered a turn without them, and not with."""
        self._refused.add((upstream, turn.facts.model))


def were_sent(turn: Turn) -> bool:
    """Whether a turn, over a bridge, told its upstream what a model thought before."""
    return turn.crossing is not None and turn.crossing.thinks


def may_be_refused(words: bytes) -> bool:
    """Whether an error, with one of `REFUSALS`, seems to be about thoughts that were sent."""
    return _KEY in words and not _WANTED.search(words)
