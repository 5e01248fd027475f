"""What a command prints: data on stdout, talk on stderr. A reader that closes its end is no error."""

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import typer

T = TypeVar("T")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def emit(data: T, render: Callable[[T], str], *, as_json: bool) -> None:
    """Print `data` as JSON, or as `render` tells it to a person."""
    if as_json:
        _write(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        out(render(data))


def printable(text: str) -> str:
    """`text` with its control characters (newline and tab aside) spelt out, so that none of them, wherever it
    came from, is obeyed by a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def out(text: str) -> None:
    """Print `text` on stdout for a person, ending in one newline; nothing when it is empty."""
    _write(printable(text))


def _write(text: str) -> None:
    if not text:
        return
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more when it ends; give it a place where that cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def say(text: str) -> None:
    """Talk to the person at the terminal."""
    print(printable(text), file=sys.stderr, flush=True)  # noqa: T201 - this is the one place that talks


def hint(answer: dict[str, Any]) -> None:
    """Pass on the hint that an answer of the daemon carries, if it does."""
    if text := answer.get("hint"):
        say(f"hint: {text}")
