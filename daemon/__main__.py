"""`python -m daemon VERB`: what must work without a running daemon.

Each verb is a function of its words that returns an exit code: 0 done, 1 failed, 2 wrong usage or
configuration, 4 not found, 70 a bug. To add one: a line in `VERBS`.

What an error tells is masked: a key that stands where it does not belong would go to the screen and into the
log.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from daemon.scrub import masked
from reef._plain import error_text, exit_code
from reef.errors import ReefError

VERBS = {
    "serve": "daemon.serve:serve",
    "check-config": "daemon.serve:check_config",
    "models": "daemon.runtimes.models_verb:main",
}


def main(words: Sequence[str]) -> int:
    """Run one verb and tell what went wrong in lines for people."""
    if not words or words[0] not in VERBS:
        told = f"`{words[0]}` is not a verb" if words else "a verb is missing"
        print(f"error: {told}\nhint: one of {', '.join(VERBS)}", file=sys.stderr)
        return 2
    module, _, function = VERBS[words[0]].partition(":")
    try:
        code: int = getattr(import_module(module), function)(list(words[1:]))
    except ReefError as error:
        print(masked(error_text(error)), file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        return 130
    except Exception:
        traceback.print_exc()
        return 70
    return code


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
