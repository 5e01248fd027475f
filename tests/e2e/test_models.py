"""`reef models add`, then a daemon that serves the model by its name."""

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.running import Daemon, clean_environment, running, wait_for
from tests.stub_provider import StubProvider
from tests.tiny_gguf import tiny_model


def reef(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("reef")), *words]
    environ = clean_environment(folder / "home", **data(folder))
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=folder, check=False)


def data(folder: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(folder / "data"), "NO_COLOR": "1"}


def served(daemon: Daemon) -> dict[str, str]:
    row: dict[str, str] = daemon.get("/reef/status")["serving"]["upstreams"][0]
    return row


def test_a_file_is_served_by_the_name_it_was_given(tmp_path: Path) -> None:
    added = reef(tmp_path, "models", "add", str(tiny_model()), "--name", "pocket")
    assert added.returncode == 0, added.stderr
    assert "reef up --model pocket" in added.stderr
    assert "pocket" in reef(tmp_path, "models").stdout
    with running(tmp_path, "--model", "pocket", environ=data(tmp_path)) as daemon:
        wait_for(lambda: served(daemon)["state"] == "ready" or None, "the engine")
        assert (served(daemon)["kind"], served(daemon)["model"]) == ("engine", "pocket")
        daemon.ask("hello", model="pocket", max_tokens=2)
        refused = reef(tmp_path, "models", "remove", "pocket")
        assert refused.returncode == 1
        assert "the running daemon serves the model `pocket`\nhint: first `reef down`" in refused.stderr
        assert reef(tmp_path, "models", "add", str(tiny_model()), "--name", "spare").returncode == 0
        assert reef(tmp_path, "models", "remove", "spare").returncode == 0
    assert reef(tmp_path, "models", "remove", "pocket").returncode == 0
    assert tiny_model().is_file()
    gone = reef(tmp_path, "models", "remove", "pocket")
    assert gone.returncode == 4
    assert "hint:" in gone.stderr


def test_a_model_of_another_server_is_asked_there(tmp_path: Path) -> None:
    with StubProvider() as stub:
        added = reef(tmp_path, "models", "add", "ollama:stub-model", "--url", stub.url, "--name", "mine")
        assert added.returncode == 0, added.stderr
        with running(tmp_path, "--model", "mine", environ=data(tmp_path)) as daemon:
            assert served(daemon)["url"] == f"{stub.url}/v1"
            assert served(daemon)["model"] == "stub-model"
            daemon.ask("hello", model="stub-model")
            refused = reef(tmp_path, "models", "remove", "mine")
            assert refused.returncode == 1
            assert "serves the model `mine`" in refused.stderr
        assert reef(tmp_path, "models", "remove", "mine").returncode == 0


def test_a_model_that_nobody_has_stops_the_start(tmp_path: Path) -> None:
    environ = data(tmp_path) | {"PATH": os.environ["PATH"]}
    daemon = Daemon(tmp_path, "--model", "nowhere-to-be-found", environ=environ)
    try:
        daemon.start()
    except AssertionError as error:
        told = str(error)
    else:
        daemon.kill()
        raise AssertionError("it should not have started")
    assert "there is no model `nowhere-to-be-found`" in told
    assert "reef models add" in told
