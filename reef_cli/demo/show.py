"""Telling what the demo does: headings, exchanges, progress."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from reef_cli.demo.cases import Case
from reef_cli.output import out, say

WIDTH = 78


def heading(number: int, title: str, text: str) -> None:
    out(f"\n{_bold(f'{number}  {title}')}  {text}")


def exchange(case: Case, answer: str, receipt: str) -> None:
    """One question with its answer, and whether that is right."""
    mark = "right" if case.is_right(answer) else "wrong"
    said = " ".join(answer.split())
    room = WIDTH - len(case.prompt) - 14
    out(f"   {mark}  {case.prompt}  {said if len(said) <= room else said[: room - 3] + '...'}")
    out(f"          receipt {receipt}")


def indented(text: str, indent: str = "   ") -> None:
    out("\n".join(f"{indent}{line}".rstrip() for line in text.splitlines()))


class Progress:
    """A counter on one line of the terminal; in a pipe, a line at each quarter."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._quarter = -1

    def step(self, what: str, done: int, total: int) -> None:
        if self._live:
            filled = "#" * (20 * done // max(total, 1))
            sys.stderr.write(f"\r   {what}: [{filled:<20}] {done}/{total} ")
            if done >= total:
                sys.stderr.write("\n")
            sys.stderr.flush()
        elif (quarter := 4 * done // max(total, 1)) != self._quarter:
            self._quarter = quarter
            say(f"   {what}: {done}/{total}")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what is waited for, and how long it took."""
    began = time.monotonic()
    say(f"   {what} ...")
    yield
    say(f"   done in {time.monotonic() - began:.1f} s")


def _bold(text: str) -> str:
    plain = os.environ.get("NO_COLOR") or not sys.stdout.isatty()
    return text if plain else f"\x1b[1m{text}\x1b[0m"
