"""The verb `python -m daemon models list|add NAME`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from daemon.runtimes.fetch import Progress, fetch
from daemon.runtimes.models import KNOWN, KnownModel, listing, path_of


def main(words: Sequence[str]) -> int:
    """`models list|add NAME [--json]`: data on stdout, talk and progress on stderr.

    Raises:
        NotFound, Unavailable: as `fetch`.
    """
    parser = argparse.ArgumentParser(prog="python -m daemon models", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("list", "add"):
        verbs.add_parser(verb).add_argument("--json", action="store_true")
    verbs.choices["add"].add_argument("name")
    asked = parser.parse_args(words)
    if asked.verb == "add":
        path = str(_add(asked.name))
        row = next(row for row in listing() if row["path"] == path)
        print(orjson.dumps(row).decode() if asked.json else path)  # noqa: T201 - the command's answer
    elif asked.json:
        print(orjson.dumps({"models": listing()}).decode())  # noqa: T201
    else:
        for row in listing():
            here = row["path"] or f"not here; reef models add {row['name']} ({row['megabytes']} MB)"
            print(f"{row['name']:<12} {row['about']}\n{'':<12} {here}")  # noqa: T201
    return 0


def _add(name: str) -> Path:
    """Fetch a model and say what happens meanwhile."""
    model, there = KNOWN.get(name), path_of(name).is_file()
    if model is None or there:
        path = fetch(name)
        _talk(f"{name} is here already, its checksum is right")
        return path
    _talk(f"fetching {name} ({model.megabytes} MB, {model.licence}): {model.about}")
    try:
        path = fetch(name, _progress(model))
    finally:
        if sys.stderr.isatty():
            _talk("")
    _talk(f"{name} is here, its checksum is right")
    return path


def _progress(model: KnownModel) -> Progress:
    """One line that is written over on a terminal; elsewhere a line every tenth."""
    told = 0

    def tell(megabytes: float) -> None:
        nonlocal told
        percent = min(100, round(100 * megabytes / model.megabytes))
        if sys.stderr.isatty():
            print(f"\r{percent:3d} %", end="", file=sys.stderr, flush=True)  # noqa: T201
        elif percent >= told + 10:
            told = percent
            _talk(f"{percent:3d} %")

    return tell


def _talk(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
