"""What an engine's log says about its end: of many lines the one that tells why."""

import re
from collections.abc import Sequence

LONGEST = 300
_LLAMA = "error loading model:"
"""Where llama.cpp says what is wrong with a file; what follows it is less telling."""
_WHO_AND_WHEN = re.compile(r"^\(\w+[^()]* pid=\d+\) (?:[A-Z]+ [\d-]+ [\d:]+ \[[^\]]*\]\s*)?")
"""What vLLM's processes put before their lines."""
_REASON = re.compile(r"^(?:[\w.]*(?:Error|Exception): |Value error, |[\w -]+: error: )\S")
"""An exception's last line in Python, what pydantic found wrong, what argparse did not understand."""
_ELSEWHERE = "root cause"
"""Those of vLLM's errors say so that only tell of another one."""


def why_not_loaded(lines: Sequence[str]) -> str:
    """The line that says why a model could not be loaded; the last where none does."""
    for line in lines:
        if _LLAMA in line:
            return line[:LONGEST]
    said = [_WHO_AND_WHEN.sub("", line) for line in lines]
    reasons = [line for line in said if _REASON.match(line) and _ELSEWHERE not in line]
    return (reasons or said or [""])[-1].removeprefix("Value error, ")[:LONGEST]
