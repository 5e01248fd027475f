"""A short soak: no request is lost, no answer is wrong, and memory stays where it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.running import ROOT


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_memory_stays_where_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "soak", "--requests", "4000", "--results", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
