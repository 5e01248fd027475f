"""`reef` as people run it: the installed command, a process of its own, in a folder with a home."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from reef.home import is_running, read_daemon

REEF = str(Path(sys.executable).with_name("reef"))
COMMAND_S = 60.0
CHANGES_A_DAEMON = ("REEF_", "OPENAI_", "ANTHROPIC_", "MODEL_PATH", "PYTHON", "COLUMNS")


@dataclass(frozen=True)
class Ran:
    """How a command ended. It never ends in a traceback."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal:
    """A working folder, an environment, and the home in it."""

    reef_path = REEF
    patience_s = COMMAND_S

    def __init__(self, folder: Path, *, home: Path | None = None, **environ: str) -> None:
        self.folder = folder
        self.home = home or folder / "home"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(CHANGES_A_DAEMON)}
        self.environ = kept | {"REEF_HOME": str(self.home), "HOME": str(folder)} | environ

    def reef(self, *words: str, code: int | None = 0, stdin: str = "") -> Ran:
        """Run `reef WORDS`; it must end with `code` (None: any but "a bug")."""
        ran = self.run([self.reef_path, *words], stdin=stdin)
        assert "Traceback" not in ran.out + ran.err, ran
        assert ran.code == code if code is not None else ran.code != 70, ran
        return ran

    def run(self, command: list[str], *, stdin: str = "") -> Ran:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=self.patience_s,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def refused(self, *words: str, code: int = 1) -> str:
        """What a command that cannot be done says: one error and its remedy, nothing else."""
        ran = self.reef(*words, code=code)
        said = ran.err.removeprefix("starting ...\n")  # what `reef up` says on a busy machine
        assert said.startswith("error: "), ran
        assert said.count("error: ") == said.count("\nhint: ") == 1, ran
        assert ran.out == "", ran
        return said

    def up(self, *words: str) -> "Terminal":
        """Start the daemon on a free port."""
        self.reef("up", "--port", "0", *words)
        return self

    @property
    def url(self) -> str:
        daemon = read_daemon(self.home)
        assert daemon is not None, "no daemon runs"
        return daemon.url

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    def http(self, **headers: str) -> httpx.Client:
        named = {"authorization": f"Bearer {self.token}"}
        named |= {key.replace("_", "-"): value for key, value in headers.items()}
        return httpx.Client(base_url=self.url, headers=named, timeout=30, trust_env=False)

    def ask(self, text: str, *, scenario: str = "default", model: str = "M") -> tuple[str, str]:
        """One chat turn in a new conversation: the answer and its receipt."""
        with self.http(x_reef_scenario=scenario) as client:
            body = {"model": model, "messages": [{"role": "user", "content": text}]}
            answer = client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["choices"][0]["message"]["content"], answer.headers["x-reef-agent-record-id"]

    def close(self) -> None:
        """End the daemon, however it is."""
        if is_running(self.home) and (daemon := read_daemon(self.home)):
            os.kill(daemon.pid, signal.SIGKILL)


@contextmanager
def terminal(folder: Path, **environ: str) -> Iterator[Terminal]:
    """A terminal whose daemon does not outlive the block."""
    folder.mkdir(parents=True, exist_ok=True)
    here = Terminal(folder, **environ)
    try:
        yield here
    finally:
        here.close()
