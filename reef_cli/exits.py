"""The exit codes, which scripts may rely on, and which error leads to which."""

from enum import IntEnum

from reef.errors import ConfigError, DaemonUnreachable, NotFound, ReefError, Refused


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


_EXITS: tuple[tuple[type[ReefError], Exit], ...] = (
    (UsageError, Exit.USAGE),
    (ConfigError, Exit.USAGE),
    (DaemonUnreachable, Exit.NO_DAEMON),
    (NotFound, Exit.NOT_FOUND),
    (Refused, Exit.REFUSED),
)


def exit_for(error: ReefError) -> Exit:
    """The exit code for an error raised on purpose."""
    return next((code for kind, code in _EXITS if isinstance(error, kind)), Exit.FAILED)
