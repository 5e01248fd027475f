"""Starting and stopping a daemon, with the real `daemon.serve` around a small stand-in for `daemon.app`."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef.errors import ConfigError, NotFound, ReefError, TimedOut
from reef.home import is_running, read_daemon, read_token
from reef_cli import lifecycle
from tests.cli.conftest import RunReef

APP = """
import http.server, json, signal, sys, threading, types
from pydantic import BaseModel
from reef.errors import ReefError

class App(types.ModuleType):
    def recipe_options(self, use):
        return BaseModel
    def check(self, loaded):
        return []
    def run(self, start):
        if start.loaded.settings.reef.host == "broken":
            raise ReefError("port 8900 is in use\\nAddress already in use", hint="--port 0 picks a free one")
        if start.loaded.settings.reef.host == "crash":
            raise RuntimeError("boom")
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                data = json.dumps({"version": "0", "pid": 1, "home": str(start.home.root), "serving": {},
                                   "hint": "an automatic gate needs at least five gate tasks"}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            def log_message(self, *words):
                pass
        server = http.server.HTTPServer(("127.0.0.1", start.loaded.settings.reef.port), Handler)
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        start.ready(f"http://127.0.0.1:{server.server_address[1]}")
        print("serving", file=sys.stderr, flush=True)
        server.serve_forever(poll_interval=0.01)
        server.server_close()

sys.modules["daemon.app"] = App("daemon.app")
from daemon.__main__ import main
sys.exit(main(["serve", *sys.argv[1:]]))
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    script = tmp_path / "serve.py"
    script.write_text(APP)
    return [sys.executable, str(script)]


@pytest.fixture
def home(nowhere: Path) -> Iterator[Path]:
    root = nowhere / "home"
    yield root
    if daemon := read_daemon(root):
        os.kill(daemon.pid, signal.SIGKILL)


def test_up_and_down(home: Path, command: list[str]) -> None:
    started = lifecycle.start(home, ["--port", "0"], command=command)
    daemon = read_daemon(home)
    assert daemon is not None
    assert (daemon.pid, daemon.url) == (started.pid, started.url)
    assert read_token(home)
    address = http.client.HTTPConnection(started.url.removeprefix("http://"), timeout=5)
    address.request("GET", "/")
    assert address.getresponse().status == 200
    address.close()
    with pytest.raises(ReefError, match="already runs"):
        lifecycle.start(home, ["--port", "0"], command=command)
    assert lifecycle.stop(home) == started.pid
    assert not is_running(home)
    assert not (home / "daemon.json").exists()
    assert lifecycle.stop(home) is None
    assert "serving" in lifecycle.tail(home / "logs" / "daemon.log", 5)


def test_a_wrong_configuration_comes_back_word_for_word(
    home: Path, command: list[str], nowhere: Path
) -> None:
    (nowhere / "reef.toml").write_text("[reef]\nprot = 1\n")
    with pytest.raises(ConfigError) as caught:
        lifecycle.start(home, [], command=command)
    assert caught.value.message == "reef.toml:2 [reef]: `prot` is not a setting"
    assert caught.value.hint == "did you mean `port`?"


def test_what_stops_the_start_comes_back(home: Path, command: list[str]) -> None:
    with pytest.raises(ReefError) as caught:
        lifecycle.start(home, ["--reef.host", "broken"], command=command)
    assert type(caught.value) is ReefError
    assert caught.value.message == "port 8900 is in use\nAddress already in use"
    assert caught.value.hint == "--port 0 picks a free one"


def test_a_crash_shows_the_last_log_lines_of_this_start(home: Path, command: list[str]) -> None:
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "daemon.log").write_text("of an earlier start\n")
    with pytest.raises(ReefError, match="ended with exit code 70 before it served") as caught:
        lifecycle.start(home, ["--reef.host", "crash"], command=command)
    assert "RuntimeError: boom" in caught.value.message
    assert "earlier" not in caught.value.message


def test_a_daemon_that_never_comes_up_is_ended(home: Path) -> None:
    waited: list[bool] = []
    with pytest.raises(TimedOut, match="did not come up"):
        lifecycle.start(
            home,
            [],
            command=[sys.executable, "-c", "import time; time.sleep(60)"],
            timeout_s=3.0,
            on_wait=lambda: waited.append(True),
        )
    assert waited == [True]


def test_after_kill_9_the_next_start_needs_no_repair(home: Path, command: list[str]) -> None:
    first = lifecycle.start(home, ["--port", "0"], command=command)
    os.kill(first.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while is_running(home) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (home / "daemon.json").exists()
    assert read_daemon(home) is None
    second = lifecycle.start(home, ["--port", "0"], command=command)
    assert read_daemon(home) is not None
    assert lifecycle.stop(home) == second.pid


def test_the_commands(home: Path, command: list[str], reef: RunReef, monkeypatch: pytest.MonkeyPatch) -> None:
    real = lifecycle.start
    monkeypatch.setattr(lifecycle, "start", lambda *a, **k: real(*a, **k, command=command))
    up = reef("up", "--port", "0", "--growth.usd-per-day", "2")
    assert up.code == 0, up.err
    assert up.out.startswith("reef serves at http://127.0.0.1:")
    assert str(home) in up.out
    assert "five gate tasks" in up.err
    again = reef("up", "--port", "1")
    assert again.code == 0
    assert "already up" in again.err
    assert "serving" in reef("logs").out
    assert reef("env").out.startswith("export OPENAI_BASE_URL=http://127.0.0.1:")
    down = reef("down")
    assert down.out.startswith("reef stopped (process ")
    assert reef("down").out.startswith("no Reef daemon runs in")
    wrong = reef("up", "--reef.prot", "1")
    assert (wrong.code, wrong.err) == (
        2, "error: --reef.prot: `prot` is not a setting\nhint: did you mean `port`?\n"
    )  # fmt: skip


def test_a_home_that_cannot_be_made(nowhere: Path) -> None:
    (nowhere / "file").write_text("")
    with pytest.raises(ReefError, match="cannot be written"):
        lifecycle.start(nowhere / "file" / "home", [])


def test_no_log_yet(nowhere: Path) -> None:
    with pytest.raises(NotFound, match="no log"):
        lifecycle.tail(nowhere / "nothing", 5)


def test_tail_reads_only_the_end(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("".join(f"line {n}\n" for n in range(5000)))
    assert lifecycle.tail(file, 2) == "line 4998\nline 4999"
    assert lifecycle.tail(file, 9, start=file.stat().st_size) == ""


def test_the_verbs_of_the_daemon(nowhere: Path) -> None:
    ran = subprocess.run([sys.executable, "-m", "daemon", "dance"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: `dance` is not a verb\nhint: one of serve")
