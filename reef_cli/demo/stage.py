"""The home that the demo runs in: its configuration, its tasks, its daemon."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from reef.client import Client
from reef.errors import ReefError, Unavailable
from reef.home import way_to_write
from reef_cli import lifecycle
from reef_cli.demo.cases import GATE, TRAFFIC

MODEL = "smollm2"
SCENARIO = "cities"
MAX_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Stage:
    """A daemon that serves the embedded model from a home of its own."""

    home: Path
    client: Client
    url: str
    environment: tuple[str, ...]
    """Names of the user's variables that were set aside, since they would lead elsewhere."""


@contextmanager
def stage(*, keep: bool) -> Iterator[Stage]:
    """Set the demo up and clean up behind it; `keep` leaves the home and its daemon. Without it the daemon
    ends with this process, even where that is killed.

    Raises:
        ReefError: the model cannot be fetched, or the daemon does not start.
    """
    model = fetch_model()
    aside = tuple(sorted(name for name in os.environ if name.startswith("REEF_")))
    for name in aside:
        del os.environ[name]
    home = Path(tempfile.mkdtemp(prefix="reef-demo-"))
    os.environ["REEF_HOME"] = str(home)
    life, mine = os.pipe()  # closed when this process dies, however it does
    try:
        config = write_files(home, model)
        started = lifecycle.start(home, ["-c", str(config)], life=None if keep else life)
        with Client(started.url, home=home) as client:
            yield Stage(home, client, started.url, aside)
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            lifecycle.stop(home)
            shutil.rmtree(home, ignore_errors=True)
        os.close(life)
        os.close(mine)


def fetch_model() -> Path:
    """The embedded model's file; downloaded the first time."""
    command = [sys.executable, "-m", "daemon", "models", "add", MODEL, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(
            "the demo needs the embedded model", hint="mend what is said above, then run `reef demo` again"
        )
    return Path(json.loads(done.stdout)["path"])


def write_files(home: Path, model: Path) -> Path:
    """Write reef.toml and tasks.toml; returns the first."""
    config = {
        "reef": {"port": 0, "model_path": str(model)},
        "scenario": [{"match": SCENARIO, "recipe": SCENARIO}],
        "recipe": {
            SCENARIO: {
                "use": "harness_evolve",
                "proposers": ["feedback", "demonstrations"],
                "batch_size": len(TRAFFIC),
                "tasks": "tasks.toml",
                "gate": {"max_tokens": MAX_TOKENS},
            }
        },
    }
    tasks = [
        {
            "id": f"city-{number:02}",
            "prompt": case.prompt,
            "evaluator": "exact",
            "expected": case.expected,
            "split": "gate",
        }
        for number, case in enumerate(GATE, 1)
    ]
    try:
        (home / "tasks.toml").write_text(tomli_w.dumps({"task": tasks}), "utf-8")
        file = home / "reef.toml"
        file.write_text(tomli_w.dumps(config), "utf-8")
    except OSError as error:
        raise ReefError(
            f"cannot write to {home}\n{error.strerror}",
            hint=way_to_write(error, "set TMPDIR to another folder"),
        ) from error
    return file
