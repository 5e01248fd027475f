"""vLLM in the child: `vllm serve` as a process of its own, which this one watches.

It uses the model, `--host`, `--port`, `--served-model-name` and `--max-model-len` of its command line, its
key in `VLLM_API_KEY`, and `GET /health`. Tried with vLLM 0.32.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import Any

_LOOK_EVERY_S = 0.1
_STOP_S = 3.0


class Server:
    """See `child.Server`. Raises `RuntimeError` from `serve` when vLLM ends before it answers."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._program: subprocess.Popen[bytes] | None = None
        self._ending = False

    def serve(self, key: str) -> str:
        port = _free_port()
        # In this process's group, which is killed as a whole where it has to be; its environment has no keys.
        program = self._program = subprocess.Popen(
            self._command(port),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            # Statistics about this machine are sent only if the user says so.
            env={"VLLM_NO_USAGE_STATS": "1"} | os.environ | {"VLLM_API_KEY": key},
        )
        while not _healthy(port):
            if (code := program.poll()) is not None:
                raise RuntimeError(f"`vllm serve` ended with status {code}")
            time.sleep(_LOOK_EVERY_S)
        threading.Thread(target=self._watch, args=(program,), daemon=True).start()
        return f"http://127.0.0.1:{port}"

    def _command(self, port: int) -> list[str]:
        config = self._config
        words = ["vllm", "serve", config["model_path"], "--host", "127.0.0.1", "--port", str(port)]
        words += ["--served-model-name", config["name"]]
        if config["context"] is not None:
            words += ["--max-model-len", str(config["context"])]
        return [*words, *config["args"]]

    def _watch(self, program: "subprocess.Popen[bytes]") -> None:
        """When vLLM ends by itself, so does this process: whoever watches it starts both anew."""
        code = program.wait()
        if not self._ending:
            # Its last words may have no end of line.
            print(f"\n`vllm serve` ended with status {code}", file=sys.stderr, flush=True)
            os._exit(1)

    def end(self) -> None:
        self._ending = True
        if (program := self._program) is None:
            return
        program.terminate()
        try:
            program.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            program.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _healthy(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
