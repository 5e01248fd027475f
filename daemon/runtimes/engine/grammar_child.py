"""The child that says whether a grammar is one: `python -m daemon.runtimes.engine.grammar_child`.

Reads grammars on stdin, a JSON text on each line, and answers each with a line: why it is none, or "". It
ends when stdin closes. What it runs is native code, which some grammars crash.
"""

import json
import sys

from llguidance import LLMatcher


def main() -> None:
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(LLMatcher.validate_grammar(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
