"""Run the benchmarks that are named, or all of them. Exit code 1 when a target is missed.

To add one: a module beside this one with `BASELINE` and `run() -> list[Row]`, and its name in `ALL`.
"""

import sys
from importlib import import_module

from bench.measure import keep, table

ALL = ("cli", "start", "tui")


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in ALL]:
        print(f"error: there is no benchmark `{unknown[0]}`\nhint: one of {', '.join(ALL)}", file=sys.stderr)
        return 2
    missed = []
    for name in names or ALL:
        module = import_module(f"bench.{name}")
        rows = module.run()
        print(f"{name}: {(module.__doc__ or '').splitlines()[0]}\n\n{table(rows, module.BASELINE)}\n")
        print(f"kept in {keep(name, rows)}\n")
        missed += [f"{row.name}: {row.best_s:.2f} s, at most {row.target_s} s" for row in rows if row.missed]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed else 0


sys.exit(main(sys.argv[1:]))
