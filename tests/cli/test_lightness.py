"""What starting a command loads. Only a fresh process shows it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.canned import RECEIPT
from tests.fake_daemon import TOKEN, FakeDaemon

HEAVY = {"textual", "rich", "torch", "sqlalchemy", "starlette", "uvicorn", "git", "httpx", "aiohttp"}
HEAVY |= {"yaml", "asyncio", "daemon", "recipes"}  # pydantic comes with typer
SCRIPT = """
import sys
from reef_cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    print(ended.code, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "status",
        "log",
        f"report --score 1 {RECEIPT}",
        "diff",
        "pending",
        "records",
        "env",
    ],
)
def test_a_fast_command_loads_nothing_heavy(fake: FakeDaemon, nowhere: Path, words: str) -> None:
    environ = {**os.environ, "REEF_URL": fake.url, "REEF_TOKEN": TOKEN}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words.split()],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    code, *loaded = ran.stderr.splitlines()[-1].split()
    assert code in ("0", "None"), ran.stderr
    assert set(loaded) & HEAVY == set()
