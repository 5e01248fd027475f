"""Run the benchmarks that are named, or all of them. Exit code 1 when a target is missed, 2 when one of them
cannot run here.

To add one: a module beside this one with `run(options) -> Report`, and its name in `ALL`.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from bench.report import RESULTS, Options, keep
from reef.errors import ReefError

ALL = ("cli", "start", "tui", "store", "proxy", "soak")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
    parser.add_argument("--guard", action="store_true", help="proxy: the small run, without rivals")
    parser.add_argument("--records", type=int, default=Options.records, help="store: how many (1000000: all)")
    parser.add_argument("--requests", type=int, default=Options.requests, help="soak: how many")
    parser.add_argument("--rounds", type=int, default=Options.rounds, help="proxy: interleaved rounds")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where to keep them")
    asked = parser.parse_intermixed_args(words)
    if unknown := [name for name in asked.names if name not in ALL]:
        print(f"error: there is no benchmark `{unknown[0]}`\nhint: one of {', '.join(ALL)}", file=sys.stderr)
        return 2
    options = Options(asked.guard, asked.records, asked.requests, asked.rounds)
    missed, broken = [], False
    for name in asked.names or ALL:
        module = import_module(f"bench.{name}")
        print(f"{name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
        try:
            report = module.run(options)
        except ReefError as error:
            print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
            broken = True
            continue
        kept_as = f"{name}-guard" if options.guard and name == "proxy" else name
        print(f"{report.text}\n\nkept in {keep(kept_as, report.data, asked.results)}\n", flush=True)
        missed += [f"{name}: {line}" for line in report.missed]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 2 if broken else 1 if missed else 0


sys.exit(main(sys.argv[1:]))
