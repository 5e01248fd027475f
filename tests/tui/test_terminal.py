"""In a real terminal: `reef up`, `reef tui`, keys, the screen; and where there is none, a clear refusal."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal, terminal
from tests.stub_provider import StubProvider

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Terminal]:
    with StubProvider() as stub, terminal(tmp_path) as found:
        found.reef("up", "--port", "0", "--upstream", stub.url, "--model", "m")
        yield found


@needs_tmux
def test_the_loop_on_the_screen(shell: Terminal, tmp_path: Path) -> None:
    shell.ask("How far?")
    socket = tmp_path / "tmux"

    def tmux(*words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(socket), *words], capture_output=True, text=True, check=True, env=shell.environ
        )
        return done.stdout

    tmux("new-session", "-d", "-x", "80", "-y", "24", shell.reef_path, "tui")
    try:

        def see(text: str) -> None:
            deadline = time.monotonic() + 20
            while text not in (shown := tmux("capture-pane", "-p")):
                assert time.monotonic() < deadline, shown
                time.sleep(0.1)

        see("reef home")
        see(" ready")
        tmux("send-keys", "t")
        see("reef traffic")
        tmux("send-keys", "?")
        see("Keys in traffic")
        tmux("send-keys", "Escape")  # q right behind it would be read as alt+q
        deadline = time.monotonic() + 20
        while "Keys in traffic" in tmux("capture-pane", "-p"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        tmux("send-keys", "q")
        deadline = time.monotonic() + 10
        while subprocess.run(["tmux", "-S", str(socket), "has-session"], capture_output=True).returncode == 0:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True)


def test_without_a_terminal_it_refuses(shell: Terminal) -> None:
    assert "reef watch" in shell.refused("tui", code=1)


def test_watch_prints_the_life_as_lines(shell: Terminal) -> None:
    with subprocess.Popen(
        [shell.reef_path, "watch", "--until", "step"],
        env=shell.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stderr is not None
        assert watching.stdout is not None
        assert watching.stderr.readline().startswith("watching http://127.0.0.1:")
        shell.ask("How far?")
        shell.reef("report", "--score", "0", "--feedback", "Use metric units.", "--last")
        lines = watching.stdout.read().splitlines()
    assert watching.returncode == 0
    assert any("turn complete M" in line for line in lines)
    assert any("report score 0" in line for line in lines)
    assert lines[-1].split()[1:3] == ["default", "step"]
