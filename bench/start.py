"""How long a daemon takes from its start to the first request it answers, with no model to load."""

import shutil
import tempfile
import urllib.request
from pathlib import Path

from bench.measure import rounds, timings
from bench.report import Options, Report
from tests.e2e.running import Daemon
from tests.stub_provider import StubProvider

BASELINE = "a home that is there"
NEW = "a new home"
ROUNDS = 5
TARGET_S = 1.5


def run(_: Options) -> Report:
    """Time a start in a new home, and one in a home that is there."""
    with StubProvider() as stub, tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), "--upstream", stub.url)

        def new() -> None:
            shutil.rmtree(daemon.home, ignore_errors=True)
            _first_answer(daemon)

        work = {NEW: new, BASELINE: lambda: _first_answer(daemon)}
        rows = rounds(work, count=ROUNDS, baseline=BASELINE, targets=dict.fromkeys(work, TARGET_S))
    return timings(rows, BASELINE)


def _first_answer(daemon: Daemon) -> None:
    daemon.start()
    with urllib.request.urlopen(f"{daemon.url}/healthz", timeout=10) as answer:
        assert answer.status == 200
    daemon.kill()
