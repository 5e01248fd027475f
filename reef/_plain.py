"""An error as the lines that a person reads; the terminal and the daemon's start-up use the same."""

from reef.errors import ReefError


def error_text(error: ReefError) -> str:
    """`error: what`, then `why: ...` (further lines of the message) and `hint: ...` where there are any."""
    what, *why = error.message.splitlines() or [""]
    lines = [f"error: {what}"]
    lines += [f"{'     ' if number else 'why: '}{line}" for number, line in enumerate(why)]
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return "\n".join(lines)
