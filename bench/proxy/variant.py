"""A daemon changed in one way, to see what that is worth: `python -m bench.proxy.variant NAME serve ...`."""

import sys

from daemon import __main__ as daemon
from daemon.records.book import RecordBook
from daemon.records.draft import Draft
from daemon.store import writer


async def _forget(_: RecordBook, draft: Draft) -> None:
    """Store nothing."""


def main(name: str, words: list[str]) -> int:
    """`one-by-one`: a commit for each record. `forgetful`: records are not stored."""
    if name == "one-by-one":
        writer.GROUP_LIMIT = 1
    elif name == "forgetful":
        RecordBook.append = _forget
    else:
        raise SystemExit(f"error: there is no variant `{name}`")
    return daemon.main(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
