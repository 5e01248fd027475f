"""A real daemon as a child process, for tests that need one to start, answer and die."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
TOKEN = "test-token"
START_S = 20.0
_SERVES = re.compile(r"reef serves at (http://\S+)")


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """The environment without anything that would change what a daemon does."""
    dropped = ("REEF_", "OPENAI_", "ANTHROPIC_", "MODEL_PATH")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return kept | {"REEF_HOME": str(home), "REEF_TOKEN": TOKEN, "PYTHONPATH": path} | extra


class Daemon:
    """`python -m daemon serve`, started in `folder`, with its home beside it."""

    program: tuple[str, ...] = ("-m", "daemon")

    def __init__(self, folder: Path, *words: str, environ: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.words = words
        self.environ = clean_environment(self.home, **(environ or {}))
        self.log = folder / "daemon.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> "Daemon":
        offset = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as sink:
            self.process = subprocess.Popen(
                [sys.executable, *self.program, "serve", "--port", "0", *self.words],
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            said = self.log.read_bytes()[offset:].decode()
            if found := _SERVES.search(said):
                self.url = found[1]
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"the daemon did not start:\n{self.log.read_text()}")

    def kill(self) -> None:
        """`kill -9`: no goodbye."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=20)

    def client(self, **headers: str) -> httpx.Client:
        named = {"authorization": f"Bearer {TOKEN}"} | {
            key.replace("_", "-"): value for key, value in headers.items()
        }
        # No TLS on loopback: without `verify` it would read every certificate there is, for each client.
        return httpx.Client(base_url=self.url, headers=named, timeout=30, trust_env=False, verify=False)

    def get(self, path: str, **params: Any) -> Any:
        with self.client() as client:
            answer = client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any, *, status: int = 200) -> Any:
        with self.client() as client:
            answer = client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def ask(self, text: str, *, scenario: str = "default", **body: Any) -> tuple[str, str]:
        """One chat turn: the answer and its receipt."""
        with self.client(x_reef_scenario=scenario) as client:
            answer = client.post(
                "/v1/chat/completions",
                json={"model": "m", "messages": [{"role": "user", "content": text}], **body},
            )
        assert answer.status_code == 200, answer.text
        said = answer.json()["choices"][0]["message"]["content"]
        return said, answer.headers["x-reef-agent-record-id"]

    def report(self, receipt: str, *, status: int = 200, **fields: Any) -> Any:
        return self.post("/reef/report", {"references": [receipt], **fields}, status=status)

    def step(
        self, scenario: str, number: int, *, until: tuple[str, ...] = ("done", "waiting")
    ) -> dict[str, Any]:
        """A step once it is in one of these states."""

        def look() -> dict[str, Any] | None:
            for row in self.get("/reef/steps", scenario=scenario)["steps"]:
                if row["step"] == number and row["state"] in until:
                    found: dict[str, Any] = self.get(f"/reef/steps/{scenario}/{number}")
                    return found
            return None

        return wait_for(look, f"step {number} of {scenario}")


def wait_for(look: Callable[[], T | None], what: str, *, seconds: float = 30.0) -> T:
    """Look until there is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come within {seconds} s")


def free_port() -> int:
    """A port on loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(folder: Path, *words: str, **options: Any) -> Iterator[Daemon]:
    daemon = Daemon(folder, *words, **options).start()
    try:
        yield daemon
    finally:
        daemon.kill()
