"""What a command prints: data on stdout, talk on stderr. A reader that closes its end is no error."""

import io
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

import typer

from reef.errors import ReefError

T = TypeVar("T")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def emit(data: T, render: Callable[[T], str], *, as_json: bool) -> None:
    """Print `data` as JSON, or as `render` tells it to a person."""
    if as_json:
        _write(json.dumps(data, indent=2, ensure_ascii=not _takes_unicode()))
    else:
        out(render(data))


def printable(text: str) -> str:
    """`text` with its control characters (newline and tab aside) spelt out, so that none of them, wherever it
    came from, is obeyed by a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def out(text: str) -> None:
    """Print `text` on stdout for a person, ending in one newline; nothing when it is empty."""
    _write(printable(text))


def spell_out() -> None:
    """From now on, characters that stdout's encoding lacks are spelt out (`\\xe9`) instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _takes_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def _write(text: str) -> None:
    """Raises `ReefError` where stdout is closed or full."""
    if not text:
        return
    stdout: TextIO | None = sys.stdout  # None where the shell closed it
    if stdout is None:
        raise ReefError("cannot print: standard output is closed", hint="do not close it (`>&-`)")
    try:
        stdout.write(text if text.endswith("\n") else text + "\n")
        stdout.flush()
    except OSError as error:
        # Python flushes stdout once more when it ends; give it a place where that cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(0) from None
        raise ReefError(
            f"cannot print to standard output\n{error.strerror}", hint="send it to a place that has room"
        ) from error


def say(text: str) -> None:
    """Talk to the person at the terminal."""
    if sys.stderr is not None:  # None where the shell closed it; `print` would take stdout then
        print(printable(text), file=sys.stderr, flush=True)  # noqa: T201 - this is the one place that talks


def hint(answer: dict[str, Any]) -> None:
    """Pass on the hint that an answer of the daemon carries, if it does."""
    if text := answer.get("hint"):
        say(f"hint: {text}")
