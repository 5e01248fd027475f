"""The home: where it is, how it is made, who holds it."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daemon.settings.home import Home, write_atomically
from daemon.settings.lock import hold
from daemon.settings.model import ReefSection, Settings
from daemon.settings.token import resolve_token
from reef.errors import Conflict, DaemonUnreachable, ReefError
from reef.home import DaemonInfo, find_daemon, find_home, is_running, read_daemon, read_token, unwritable

INFO = DaemonInfo(os.getpid(), "http://127.0.0.1:8900", "0.1.0", "2026-01-31T12:00:00.000Z", "b1")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


def test_where_a_home_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    project = tmp_path / "user" / "project"
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    default = tmp_path / "user" / ".reef"
    assert find_home({}, below) == default
    (project / "reef.toml").write_text("")
    assert find_home({}, below) == project / ".reef"
    assert find_home({"REEF_HOME": str(tmp_path / "x")}, below) == tmp_path / "x"
    nobody = find_home({"REEF_HOME": "~nobody-of-that-name/x"}, below)
    assert nobody.parts[-2:] == ("~nobody-of-that-name", "x"), "no traceback, and an error once it is made"
    default.mkdir()
    (default / "reef.toml").write_text("")
    assert find_home({}, default) == default


def test_a_home_is_private_and_stays_out_of_git(home: Home) -> None:
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert (home.root / ".gitignore").read_text() == "*\n"
    home.create()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home_is_a_clear_error(tmp_path: Path) -> None:
    parent = tmp_path / "locked"
    parent.mkdir(mode=0o500)
    with pytest.raises(ReefError, match="cannot be written") as caught:
        Home(parent / "home").create()
    assert "REEF_HOME" in caught.value.hint


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(ReefError, match="cannot be written"):
        Home(tmp_path / "home").create()


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "free some space"), (errno.EDQUOT, "free some space"), (errno.EROFS, "make it writable")],
)
def test_a_home_that_cannot_be_written_says_what_mends_it(home: Home, number: int, remedy: str) -> None:
    error = unwritable(home.root, OSError(number, os.strerror(number)))
    assert error.hint == f"{remedy}, or set REEF_HOME to another folder"


def test_daemon_json_counts_only_while_the_lock_is_held(home: Home) -> None:
    assert read_daemon(home.root) is None
    with hold(home):
        assert read_daemon(home.root) is None
        home.write_daemon(INFO)
        assert read_daemon(home.root) == INFO
        assert find_daemon({}, home=home.root).url == INFO.url
    assert home.daemon_json.exists()
    assert read_daemon(home.root) is None
    with pytest.raises(DaemonUnreachable) as caught:
        find_daemon({"REEF_HOME": str(home.root)})
    assert "reef up" in caught.value.hint
    home.forget_daemon()
    home.forget_daemon()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": "1"}', '{"pid": -1, "url": "http://x"}'])
def test_a_damaged_daemon_json_says_so(home: Home, text: str) -> None:
    with hold(home):
        home.daemon_json.write_text(text)
        with pytest.raises(ReefError, match="damaged"):
            read_daemon(home.root)


def test_one_daemon_a_home(home: Home) -> None:
    with hold(home):
        home.write_daemon(INFO)
        with pytest.raises(Conflict, match="already runs") as caught, hold(home):
            pass
        assert INFO.url in caught.value.message
    with hold(home):
        pass


def test_the_lock_is_free_again_after_kill_9(home: Home) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom daemon.settings.home import Home\n"
        "from daemon.settings.lock import hold\n"
        "with hold(Home(Path(sys.argv[1]))):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(home.root)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert is_running(home.root)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        if child.stdout:
            child.stdout.close()
    assert not is_running(home.root)
    with hold(home):
        pass


def test_asking_whether_a_daemon_runs_does_not_stop_one_from_starting(home: Home) -> None:
    import fcntl

    home.lock.touch()
    with home.lock.open() as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        import threading

        threading.Timer(0.1, lambda: fcntl.flock(asked, fcntl.LOCK_UN)).start()
        started = time.monotonic()
        with hold(home):
            assert time.monotonic() - started < 4


def test_the_token_is_made_once_and_private(home: Home) -> None:
    made = resolve_token(home, Settings(), {})
    assert made
    assert len(made) >= 32
    assert home.token.stat().st_mode & 0o777 == 0o600
    assert resolve_token(home, Settings(), {}) == made == read_token(home.root, {})
    configured = Settings(reef=ReefSection(token="configured"))
    assert resolve_token(home, configured, {"REEF_TOKEN": "given"}) == "given"
    assert resolve_token(home, configured, {}) == "configured" == read_token(home.root, {})
    assert read_token(home.root, {"REEF_TOKEN": "mine"}) == "mine"
    assert resolve_token(home, Settings(reef=ReefSection(auth=False)), {}) is None


def test_a_write_replaces_the_file_whole(home: Home) -> None:
    write_atomically(home.token, "one", mode=0o600)
    write_atomically(home.token, "two", mode=0o600)
    assert home.token.read_text() == "two"
    assert sorted(path.name for path in home.root.iterdir()) == [".gitignore", "logs", "token"]


def test_reef_url_beats_the_home(home: Home) -> None:
    environ = {"REEF_URL": "http://far:1/", "REEF_TOKEN": "t", "REEF_HOME": str(home.root)}
    address = find_daemon(environ)
    assert (address.url, address.token) == ("http://far:1", "t")
