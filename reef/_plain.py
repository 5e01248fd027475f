"""An error as lines for people and a code for scripts: in the terminal, and when a daemon starts."""

from reef.errors import ConfigError, DaemonUnreachable, NotFound, ReefError, Refused

_CODES: tuple[tuple[type[ReefError], int], ...] = (
    (ConfigError, 2),
    (DaemonUnreachable, 3),
    (NotFound, 4),
    (Refused, 5),
)


def error_text(error: ReefError) -> str:
    """`error: what`, then `why: ...` (further lines of the message) and `hint: ...` where there are any."""
    what, *why = error.message.splitlines() or [""]
    lines = [f"error: {what}"]
    lines += [f"{'     ' if number else 'why: '}{line}" for number, line in enumerate(why)]
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return "\n".join(lines)


def exit_code(error: ReefError) -> int:
    """How a command ends that stops with `error`: 1 failed, 2 wrong usage or configuration, 3 no daemon
    answers, 4 not found, 5 refused by a check."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 1)
