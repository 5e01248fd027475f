"""A disk that is full or cannot be written: clients are told so, and nothing they were promised is lost."""

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from daemon.store import probe
from reef_cli.render.status import status as rendered
from tests.e2e.running import Daemon, clean_environment, wait_for
from tests.e2e.terminal import REEF
from tests.e2e.test_crash import check_home
from tests.stub_provider import Reply, StubProvider

SERVE = """
[reef]
on_record_failure = "serve"

[[upstream]]
name = "main"
base_url = "{url}"

[recipe.units]
seed = [{{id = "units", name = "rules", config = {{text = "Answer in metric units."}}}}]

[[scenario]]
match = "*"
recipe = "units"

[[budget]]
match = "default"
tokens_per_day = 30
hard = true
"""


limits_of_another = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="another process's limits can be set on Linux only"
)


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        yield provider


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 12 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def daemon_on(folder: Path, home: Path, stub: StubProvider) -> Daemon:
    words = ("--upstream", stub.url, "--model", "m")
    return Daemon(folder, *words, environ={"REEF_HOME": str(home)}).start()


def ask(daemon: Daemon, path: str, **more: object) -> httpx.Response:
    text = os.urandom(32 * 1024).hex()  # so that a small gap is soon filled
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}
    with daemon.client() as client:
        return client.post(path, json=body)


def fill_up_with_requests(daemon: Daemon) -> list[str]:
    """Ask until it is refused; returns the receipts that were acknowledged."""
    kept = []
    for _ in range(400):
        answer = ask(daemon, "/v1/chat/completions")
        if answer.status_code != 200:
            return kept
        kept.append(answer.headers["x-reef-agent-record-id"])
    raise AssertionError("the disk was never full")


def check_refusals(daemon: Daemon, stub: StubProvider) -> None:
    """Clients are told in their dialect; the provider is asked for nothing more."""
    asked = len(stub.asked)
    chat, messages = ask(daemon, "/v1/chat/completions"), ask(daemon, "/v1/messages")
    for answer in (chat, messages):
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert "x-reef-agent-record-id" not in answer.headers
        assert "the store cannot be written" in answer.json()["error"]["message"]
    assert messages.json()["type"] == "error"
    assert messages.json()["error"]["type"] == "overloaded_error"
    assert chat.json()["error"]["type"] == "server_error"

    stream = ask(daemon, "/v1/chat/completions", stream=True)
    assert stream.status_code == 503
    assert "the store cannot be written" in stream.text
    until = time.monotonic() + probe.EVERY_S + 1
    while time.monotonic() < until:  # so long that one of them asks the store again
        assert ask(daemon, "/v1/chat/completions").status_code == 503
        time.sleep(0.1)
    assert len(stub.asked) == asked

    with daemon.client() as client:
        report = client.post("/reef/report", json={"score": 0, "feedback": "no" * 2**20})
    assert report.status_code == 503
    assert report.json()["error"]["type"] == "unavailable"
    status = daemon.get("/reef/status")
    assert status["storage"]["writable"] is False
    assert "the store cannot be written" in status["error"]["message"]


def check_recovered(daemon: Daemon, kept: list[str]) -> None:
    def look() -> httpx.Response | None:
        answer = ask(daemon, "/v1/chat/completions")
        return answer if answer.status_code == 200 else None

    answer = wait_for(look, "room on the disk", seconds=probe.EVERY_S + 7)
    for receipt in [*kept, answer.headers["x-reef-agent-record-id"]]:
        assert daemon.get(f"/reef/records/{receipt}")["status"] == "complete"
    daemon.report(answer.headers["x-reef-agent-record-id"], score=0, feedback="Use metric units.")
    daemon.step("default", 1)
    assert daemon.get("/reef/status")["storage"]["writable"] is True


def test_a_full_disk_is_said_and_over_when_there_is_room(
    tmp_path: Path, disk: Path, stub: StubProvider
) -> None:
    daemon = daemon_on(tmp_path, disk / "home", stub)
    try:
        kept = fill_up_with_requests(daemon)
        assert len(kept) <= len(stub.asked) <= len(kept) + 1
        filler = disk / "filler"
        fill(filler)
        check_refusals(daemon, stub)
        filler.unlink(missing_ok=True)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        check_recovered(daemon, kept)
        assert daemon.stop() == 0
        check_home(disk / "home")
    finally:
        daemon.kill()


def fill(path: Path) -> None:
    """Take the last byte, so that there is no room for a small write either."""
    with path.open("wb", buffering=0) as file:
        for size in (4096, 256, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def grow_no_file(daemon: Daemon) -> None:
    """From now on the kernel refuses the daemon every write that would make a file longer."""
    limit(daemon, 1)


def grow_files(daemon: Daemon) -> None:
    limit(daemon, None)


def limit(daemon: Daemon, size: int | None) -> None:
    """None: as far as its files may grow at all."""
    assert daemon.process is not None
    hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


@limits_of_another
def test_a_disk_that_fails_to_write(tmp_path: Path, stub: StubProvider) -> None:
    """The kernel refuses every write that would make a file longer: no root and no disk needed."""
    daemon = daemon_on(tmp_path, tmp_path / "home", stub)
    try:
        answer = ask(daemon, "/v1/chat/completions")
        kept = [answer.headers["x-reef-agent-record-id"]]
        grow_no_file(daemon)
        assert ask(daemon, "/v1/chat/completions").status_code == 503
        assert len(stub.asked) <= 2  # another write may have shown it before
        check_refusals(daemon, stub)
        grow_files(daemon)
        check_recovered(daemon, kept)
        assert daemon.stop() == 0
        check_home(daemon.home)
    finally:
        daemon.kill()


@limits_of_another
def test_a_scenario_that_could_not_be_made_is_made_later(tmp_path: Path, stub: StubProvider) -> None:
    daemon = daemon_on(tmp_path, tmp_path / "home", stub)
    try:
        grow_no_file(daemon)
        assert ask(daemon, "/v1/chat/completions").status_code == 503
        grow_files(daemon)
        check_recovered(daemon, [])
        assert daemon.stop() == 0
        check_home(daemon.home)
    finally:
        daemon.kill()


@limits_of_another
def test_served_all_the_same_it_gives_no_receipts_and_counts_what_is_used(
    tmp_path: Path, stub: StubProvider
) -> None:
    (tmp_path / "reef.toml").write_text(SERVE.format(url=stub.url))
    daemon = Daemon(tmp_path).start()
    stub.answer = lambda asked: Reply("well", prompt_tokens=9)
    try:
        daemon.ask("hi")
        grow_no_file(daemon)
        for scenario, stream in [("default", False), ("default", True), ("new", False), ("new", True)]:
            with daemon.client(x_reef_scenario=scenario) as client:
                body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
                answer = client.post("/v1/chat/completions", json=body)
            assert (answer.status_code, "well" in answer.text) == (200, True)
            assert "x-reef-agent-record-id" not in answer.headers
            assert "agent_record_id" not in answer.text
            assert ("x-reef-release-id" in answer.headers) is (scenario == "default")
        assert "Answer in metric units." in stub.asked[-1].system
        status = daemon.get("/reef/status")
        assert status["storage"]["writable"] is False
        assert status["scenarios"]["default"]["budgets"][0]["used"] == 30
        assert ask(daemon, "/v1/messages").status_code == 429
        grow_files(daemon)
        wait_for(lambda: daemon.get("/reef/status")["storage"]["writable"] or None, "room", seconds=10)
        _, receipt = daemon.ask("hi", scenario="later")
        assert daemon.get(f"/reef/records/{receipt}")["status"] == "complete"
        assert daemon.stop() == 0
        check_home(daemon.home)
    finally:
        daemon.kill()


class Cramped(Daemon):
    """A daemon whose files may not grow beyond 48 KiB from its start on."""

    program = (
        "-c",
        "import resource, sys; from daemon.__main__ import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (48 * 1024, resource.RLIM_INFINITY)); "
        "sys.exit(main(sys.argv[1:]))",
    )


@limits_of_another
def test_a_start_on_a_full_disk_says_so_at_once(tmp_path: Path, stub: StubProvider) -> None:
    daemon_on(tmp_path, tmp_path / "home", stub).stop()
    daemon = Cramped(tmp_path, "--upstream", stub.url, "--model", "m")
    try:
        daemon.start()
        status = daemon.get("/reef/status")
        assert "NOT WRITABLE" in rendered(status)
        assert "the store cannot be written" in status["error"]["message"]
        assert ask(daemon, "/v1/messages").status_code == 503
        assert not stub.asked
        told = subprocess.run(
            [REEF, "up"], cwd=tmp_path, env=daemon.environ, capture_output=True, text=True, timeout=60
        )
        assert "warning: the store cannot be written" in told.stderr
        grow_files(daemon)
        check_recovered(daemon, [])
    finally:
        daemon.kill()


@pytest.mark.parametrize("room", [0, 40 * 1024])
def test_a_start_for_which_there_is_no_room(disk: Path, stub: StubProvider, room: int) -> None:
    """However far it gets: to the home or to the store."""
    fill = disk / "fill"
    with fill.open("wb") as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(2**16))
            file.flush()
    os.truncate(fill, fill.stat().st_size - room)
    told = subprocess.run(
        [REEF, "up", "--port", "0", "--upstream", stub.url],
        cwd=disk, env=clean_environment(disk / "home"), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert told.returncode == 1
    assert "hint: free some" in told.stderr or "hint: the disk may be full" in told.stderr, told.stderr


@pytest.fixture(params=["file system", "rights"])
def read_only(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Makes a home that cannot be written, by a read-only file system or by missing rights."""
    if request.param == "rights":
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        home = tmp_path / "home"
        home.mkdir()

        def seal() -> Path:
            for folder in (home / "releases.git", home):
                folder.chmod(0o555)
            return home

        yield seal
        home.chmod(0o755)
        return
    disk = request.getfixturevalue("disk")

    def remount() -> Path:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        return Path(disk) / "home"

    yield remount


def test_a_read_only_home_stops_the_start_with_a_remedy(
    tmp_path: Path, read_only: Callable[[], Path], stub: StubProvider
) -> None:
    home = tmp_path / ("disk/home" if (tmp_path / "disk").exists() else "home")
    daemon = daemon_on(tmp_path, home, stub)
    daemon.stop()
    sealed = read_only()
    with pytest.raises(AssertionError) as caught:
        daemon_on(tmp_path, sealed, stub)
    told = str(caught.value).rpartition("reef serves at")[2]
    assert "error: " in told
    assert "hint: " in told
    assert "Traceback" not in told
