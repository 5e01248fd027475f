"""The verb `python -m daemon models list|add|remove`."""

import argparse
import sys
from collections.abc import Sequence

import orjson

from daemon.runtimes.keeping import Progress
from daemon.runtimes.models import KNOWN, file_of, listing, remove
from daemon.runtimes.models_add import add
from daemon.runtimes.models_use import check_unused


def main(words: Sequence[str]) -> int:
    """`models list|add SOURCE|remove NAME [--json]`: data on stdout, talk and progress on stderr.

    Raises:
        ReefError: as `add`, `check_unused` and `remove`.
    """
    asked = _parser().parse_args(words)
    if asked.verb == "list":
        _list(asked.json)
    elif asked.verb == "remove":
        check_unused(asked.name)
        file = str(remove(asked.name))
        _say(orjson.dumps({"name": asked.name, "removed": file}).decode() if asked.json else file)
    else:
        name = _add(asked)
        row = next(row for row in listing() if row["name"] == name)
        _say(orjson.dumps(row).decode() if asked.json else row["path"] or row["url"])
        _talk(f"to serve it: reef up --model {name}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m daemon models", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("list", "add", "remove"):
        verbs.add_parser(verb).add_argument("--json", action="store_true")
    verbs.choices["remove"].add_argument("name")
    adding = verbs.choices["add"]
    adding.add_argument("source")
    for option in ("--name", "--sha256", "--url"):
        adding.add_argument(option)
    return parser


def _list(as_json: bool) -> None:
    rows = listing()
    if as_json:
        _say(orjson.dumps({"models": rows}).decode())
        return
    for row in rows:
        here = row["path"] or row["url"] or f"not here; reef models add {row['name']} ({row['megabytes']} MB)"
        _say(f"{row['name']:<12} {row['about']}\n{'':<12} {here}")


def _add(asked: argparse.Namespace) -> str:
    """Add a model and say what happens meanwhile."""
    options = {"name": asked.name, "sha256": asked.sha256, "url": asked.url}
    if (known := KNOWN.get(asked.source)) is not None and file_of(known.name) is None:
        _talk(f"fetching {known.name} ({known.megabytes} MB, {known.licence}): {known.about}")
    drawing = sys.stderr.isatty()
    before = set(_kept())
    try:
        name = add(asked.source, **options, on_progress=_progress(known.megabytes if known else None))
    finally:
        if drawing:
            print("\r", end="", file=sys.stderr, flush=True)
    how = "is here" if name not in before else "is here already"
    _talk(f"{name} {how}, its checksum is right" if known or asked.sha256 else f"{name} {how}")
    return name


def _kept() -> list[str]:
    return [row["name"] for row in listing() if row["here"]]


def _progress(whole: int | None) -> Progress:
    """One line that is written over on a terminal; elsewhere a line every tenth, or every 100 MB where nobody
    knows how many there are."""
    told = 0

    def tell(megabytes: float) -> None:
        nonlocal told
        percent = None if whole is None else min(100, round(100 * megabytes / whole))
        line = f"{megabytes:.0f} MB" if percent is None else f"{percent:3d} %"
        done = int(megabytes) // 10 if percent is None else percent
        if sys.stderr.isatty():
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
        elif done >= told + 10:
            told = done
            _talk(line)

    return tell


def _say(line: str) -> None:
    print(line)


def _talk(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
