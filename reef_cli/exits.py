"""The exit codes, which scripts may rely on, and which error leads to which."""

from enum import IntEnum

from reef._plain import exit_code
from reef.errors import ReefError


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_DAEMON = 3
    NOT_FOUND = 4
    REFUSED = 5
    BUG = 70


class UsageError(ReefError):
    """The words of the command do not fit together."""


def exit_for(error: ReefError) -> Exit:
    """The exit code for an error raised on purpose."""
    return Exit.USAGE if isinstance(error, UsageError) else Exit(exit_code(error))
