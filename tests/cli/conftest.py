"""Run `reef` in this process against a fake daemon, and read what it printed and how it ended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reef_cli.main import main
from tests.cli.canned import routes
from tests.fake_daemon import TOKEN, FakeDaemon, fake_daemon


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


RunReef = Callable[..., Ran]


@pytest.fixture
def fake() -> Iterator[FakeDaemon]:
    with fake_daemon() as running:
        running.routes.update(routes())
        yield running


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder and a home of its own, no daemon."""
    for name in ("REEF_URL", "REEF_TOKEN", "REEF_UPSTREAM_URL", "MODEL_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def reef(capsys: pytest.CaptureFixture[str], nowhere: Path) -> RunReef:
    """`reef("log", "--oneline")` with no daemon."""

    def run(*words: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def online(reef: RunReef, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> RunReef:
    """`reef` with the fake daemon answering."""
    monkeypatch.setenv("REEF_URL", fake.url)
    monkeypatch.setenv("REEF_TOKEN", TOKEN)
    return reef
