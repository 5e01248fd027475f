"""The child process: `python -m daemon.runtimes.engine.child`.

Reads one JSON line on stdin (`engine, model_path, name, context, parallel, threads, args`), takes its key
from `REEF_ENGINE_KEY`, answers one JSON line (`{"url", "boot"}` or `{"error"}`) on stdout, and ends when
stdin closes: a daemon that was killed leaves no orphan.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn, Protocol

KEY_VARIABLE = "REEF_ENGINE_KEY"

SERVERS = {
    "xllamacpp": "daemon.runtimes.engine.serve_xllamacpp",
    "llama-cpp-python": "daemon.runtimes.engine.serve_llama_cpp",
    "vllm": "daemon.runtimes.engine.serve_vllm",
}


class Server(Protocol):
    """What a module of `SERVERS` has as `Server(config)`. It is made before anything is loaded."""

    def serve(self, key: str) -> str:
        """Load the model and open a port on loopback; returns its address once it answers."""

    def end(self) -> None:
        """End what would outlive this process. Called at any time, from another thread, more than once."""


def main() -> NoReturn:
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the engine's own chatter goes to the log
    config = json.loads(sys.stdin.buffer.readline())
    started = time.monotonic()
    try:
        server: Server = import_module(SERVERS[config["engine"]]).Server(config)
        threading.Thread(target=_end_with_stdin, args=(server.end,), daemon=True).start()
        url = server.serve(os.environ.pop(KEY_VARIABLE))
    except Exception as error:
        print(json.dumps({"error": str(error) or repr(error)}), file=answer, flush=True)
        os._exit(1)
    boot = round(time.monotonic() - started, 3)
    print(json.dumps({"url": url, "boot": boot}), file=answer, flush=True)
    while True:
        signal.pause()


def _end_with_stdin(end: Callable[[], None]) -> None:
    """No destructor runs: it would wait for requests nobody listens to. What the server started goes too."""
    sys.stdin.buffer.read()
    end()
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
