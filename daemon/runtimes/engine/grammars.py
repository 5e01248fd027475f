"""Whether llguidance makes something of a grammar. It is asked in a process of its own: what crashes it, or
takes it minutes, harms nobody else."""

import json
import os
import select
import subprocess
import sys
import threading
from contextlib import suppress

from daemon.runtimes.environment import without_keys

ANSWER_S = 5.0
_CHILD = "daemon.runtimes.engine.grammar_child"


class Grammars:
    """Started with the first question, and anew where it has ended. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def refusal(self, grammar: str) -> str | None:
        """Why it is none, or None."""
        with self._lock:
            if self._child is not None and self._child.poll() is not None:
                self._end()
            if self._child is None:
                self._child = subprocess.Popen(
                    [sys.executable, "-P", "-m", _CHILD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=without_keys(os.environ),
                    start_new_session=True,  # Ctrl-C in the terminal is for the daemon, whose end ends it
                )
            answer = _ask(self._child, json.dumps(grammar).encode() + b"\n")
            if answer is None:
                self._end()
                return "it is too much for the library that makes grammars"
        return json.loads(answer) or None

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None


def _ask(child: "subprocess.Popen[bytes]", question: bytes) -> bytes | None:
    """The line that it answers; None where it ended, or says nothing in time."""
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(OSError):
        child.stdin.write(question)
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], ANSWER_S)
        if ready and (line := child.stdout.readline()).endswith(b"\n"):
            return line
    return None
