"""A daemon that runs while its configuration, its address or its home changes, or while it is stopped."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reef.home import read_daemon
from tests.e2e.running import wait_for
from tests.e2e.terminal import Terminal
from tests.processes import is_running
from tests.stub_provider import Raw, StubProvider

CHAT = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        yield provider


def test_a_configuration_that_changed_while_it_runs(here: Terminal, stub: StubProvider) -> None:
    here.up("--upstream", stub.url)
    assert here.reef("up").err.startswith("reef is already up\n")
    told = here.reef("up", "--reef.max_body_mb", "1").err
    what = "what you asked for takes effect after `reef down`, then `reef up --reef.max_body_mb 1`"
    assert f"reef is already up; {what}\n" in told
    (here.folder / "reef.toml").write_text("[reef]\nport = 0\n")
    assert "the changed configuration takes effect after" in here.reef("up").err
    assert "warning:" not in here.reef("status").out
    (here.folder / "reef.toml").write_text("[reef]\nprot = 0\n")
    assert "did you mean `port`?" in here.refused("up", code=2)
    assert "did you mean `max_body_mb`?" in here.refused("up", "--reef.max_body_bm", "1", code=2)


def test_a_budget_of_money_without_a_price(here: Terminal, stub: StubProvider) -> None:
    (here.folder / "reef.toml").write_text("[[budget]]\nusd_per_day = 1.0\n")
    warning = "warning: a [[budget]] in US dollars bounds nothing"
    assert warning in here.reef("up", "--port", "0", "--upstream", stub.url).err
    assert warning in here.reef("status").out


def test_a_stale_environment(here: Terminal, stub: StubProvider) -> None:
    here.up("--upstream", stub.url)
    old = here.url
    here.reef("down")
    here.up("--upstream", stub.url)
    here.environ["REEF_URL"] = old
    assert here.url != old
    told = here.refused("log", code=3)
    assert f"REEF_URL names {old}, but the daemon of this home is at {here.url}" in told
    assert f"REEF_URL={here.url}" in here.reef("env").out


def test_a_home_that_was_deleted(here: Terminal, stub: StubProvider) -> None:
    here.up("--upstream", stub.url)
    daemon = read_daemon(here.home)
    assert daemon is not None
    here.environ |= {"REEF_URL": daemon.url, "REEF_TOKEN": here.token}
    shutil.rmtree(here.home)
    try:
        told = here.reef("status").out
        assert "NOT WRITABLE" in told
        assert "the database is gone" in told
    finally:
        os.kill(daemon.pid, signal.SIGKILL)


DEMO = """
import sys, time
from pathlib import Path
from reef.home import read_daemon
from reef_cli.demo import stage

def write_files(home, model):
    upstream = f'[[upstream]]\\nname = "u"\\nbase_url = "{sys.argv[1]}"\\nmodel = "m"\\n'
    (home / "reef.toml").write_text("[reef]\\nport = 0\\n" + upstream)
    return home / "reef.toml"

stage.fetch_model, stage.write_files = Path, write_files
with stage.stage(keep=False) as setting:
    print(read_daemon(setting.home).pid, setting.home, flush=True)
    time.sleep(600)
"""


def test_a_demo_that_is_killed_leaves_no_daemon(here: Terminal, stub: StubProvider) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-c", DEMO, stub.url],
        cwd=here.folder,
        env=here.environ | {"TMPDIR": str(here.folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert demo.stdout is not None
        pid, _, home = demo.stdout.readline().strip().partition(" ")
        assert is_running(int(pid))
    finally:
        demo.kill()
        demo.communicate()
    wait_for(lambda: not is_running(int(pid)) or None, "the end of the daemon")
    assert read_daemon(Path(home)) is None, "it ended in order"


STREAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat": ("chat/completions", {"messages": CHAT}, '"error"'),
    "messages": ("messages", {"messages": CHAT, "max_tokens": 99}, "event: error"),
    "responses": ("responses", {"input": "hi"}, "response.failed"),
}


@pytest.mark.parametrize("dialect", STREAMS)
def test_down_during_a_stream(here: Terminal, dialect: str) -> None:
    """The client is told in its own dialect, the record is kept, and the log has no traceback."""
    path, body, ending = STREAMS[dialect]
    with StubProvider(lambda _: "word " * 200) as slow:
        slow.event_delay_s = 0.2
        here.up("--upstream", slow.url, "--model", "M")
        with (
            here.http() as client,
            client.stream("POST", f"/v1/{path}", json={"model": "m", "stream": True, **body}) as answer,
        ):
            pieces = answer.iter_text()
            receipt, first = answer.headers["x-reef-agent-record-id"], next(pieces)
            began = time.monotonic()
            with ThreadPoolExecutor(1) as pool:
                down = pool.submit(here.reef, "down")
                said = first + "".join(pieces)
                assert down.result().out.startswith("reef stopped")
        assert time.monotonic() - began < 20, "the whole answer takes 40 s"
    assert ending in said
    assert "the server is stopping" in said
    assert "Traceback" not in (here.home / "logs" / "daemon.log").read_text()
    with StubProvider() as stub:
        here.up("--upstream", stub.url)
        record = here.reef("explain", receipt, "--json").json
        assert (record["status"], "was stopped" in record["error"]["message"]) == ("failed", True)


def test_down_during_a_stream_that_is_passed_on(here: Terminal) -> None:
    """No record is kept of it; its client is told all the same."""
    with StubProvider() as slow:
        slow.event_delay_s = 0.2
        slow.answer = lambda _: Raw((b'data: {"choices":[{"text":"word "}]}\n\n',) * 200, "text/event-stream")
        here.up("--upstream", slow.url, "--model", "M")
        body = {"model": "m", "stream": True, "prompt": "hi"}
        with here.http() as client, client.stream("POST", "/v1/completions", json=body) as answer:
            pieces = answer.iter_text()
            first = next(pieces)
            with ThreadPoolExecutor(1) as pool:
                down = pool.submit(here.reef, "down")
                said = first + "".join(pieces)
                assert down.result().out.startswith("reef stopped")
    assert "the server is stopping" in said
