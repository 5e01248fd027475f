"""`vllm serve` as a child of a real daemon. The program needs a GPU: `tests/fake_vllm.py` stands for it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.running import ROOT, Daemon, free_port, running, wait_for
from tests.processes import is_running

MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A PATH with a `vllm` on it."""
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport runpy\nrunpy.run_module('tests.fake_vllm', run_name='__main__')\n"
    )
    program.chmod(0o755)
    (tmp_path / "weights").mkdir()
    return {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "FAKE_VLLM_TOLD": str(tmp_path / "told.json"),
    }


def words(tmp_path: Path, model: str = "weights") -> tuple[str, ...]:
    return ("--engine", "vllm", "--reef.model_path", str(tmp_path / model))


def told(environ: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(environ["FAKE_VLLM_TOLD"]).read_text())
    return found


def serving(daemon: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.get("/reef/status")["serving"]["upstreams"][0]
    return found


def ready(daemon: Daemon) -> dict[str, Any]:
    return wait_for(lambda: row if (row := serving(daemon))["state"] == "ready" else None, "vllm")


def post(daemon: Daemon, path: str, text: str = "hello") -> httpx.Response:
    with daemon.client() as client:
        messages = [{"role": "user", "content": text}]
        return client.post(path, json={"model": "weights", "messages": messages, "max_tokens": 2})


def test_it_is_started_watched_and_ended(tmp_path: Path, environ: dict[str, str]) -> None:
    go = tmp_path / "go"
    more = ("--engine.args", '["--enable-auto-tool-choice"]', "--engine.context", "4096")
    with running(tmp_path, *words(tmp_path), *more, environ=environ | {"FAKE_VLLM_GO": str(go)}) as daemon:
        assert (serving(daemon)["kind"], serving(daemon)["state"]) == ("vllm", "loading")
        loading = post(daemon, "/v1/messages")
        assert loading.status_code == 503
        assert int(loading.headers["retry-after"]) >= 1
        go.touch()
        assert ready(daemon)["model"] == "weights"
        first = told(environ)
        assert first["model"] == str(tmp_path / "weights")
        assert (first["host"], first["served_model_name"]) == ("127.0.0.1", "weights")
        assert (first["max_model_len"], first["enable_auto_tool_choice"]) == (4096, True)

        for path in ("/v1/chat/completions", "/v1/messages"):
            assert post(daemon, path).status_code == 200, path
            refused = post(daemon, path, "too long")
            assert refused.status_code == 400
            assert "prompt is too long: 5000 tokens > 4096 maximum" in refused.json()["error"]["message"]
            assert "reef models add" in refused.text

        os.kill(first["pid"], signal.SIGKILL)
        wait_for(lambda: serving(daemon)["state"] == "down" or None, "the crash")
        wait_for(lambda: not is_running(first["worker"]) or None, "the end of its worker")
        ready(daemon)
        second = told(environ)
        assert second["pid"] != first["pid"]
        assert post(daemon, "/v1/messages").status_code == 200

        daemon.kill()
        for pid in (second["pid"], second["worker"]):
            wait_for(lambda pid=pid: not is_running(pid) or None, "the end of vllm", seconds=10)


def test_stopping_the_daemon_while_it_loads_ends_it(tmp_path: Path, environ: dict[str, str]) -> None:
    never = environ | {"FAKE_VLLM_GO": str(tmp_path / "never")}
    with running(tmp_path, *words(tmp_path), environ=never) as daemon:
        wait_for(lambda: Path(environ["FAKE_VLLM_TOLD"]).exists() or None, "vllm")
        pids = wait_for(lambda: told(environ) or None, "vllm")
        assert daemon.stop() == 0
        for name in ("pid", "worker"):
            assert not is_running(pids[name]), name


def test_it_gets_no_key_but_its_own(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "reef.toml").write_text(
        '[[upstream]]\nname = "far"\nbase_url = "http://127.0.0.1:9"\napi_key_env = "FAR_SECRET"\n'
    )
    theirs = dict.fromkeys(("FAR_SECRET", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "secret")
    with running(tmp_path, *words(tmp_path), environ=environ | theirs | {"HF_TOKEN": "hub"}) as daemon:
        wait_for(lambda: Path(environ["FAKE_VLLM_TOLD"]).exists() or None, "vllm")
        got = told(environ)["environ"]
        assert "secret" not in got.values()
        assert [name for name in got if name.startswith("REEF_")] == []
        assert got["VLLM_API_KEY"]
        assert got["HF_TOKEN"] == "hub", "it fetches models with that"
        assert daemon.stop() == 0


def test_a_model_that_it_cannot_load_is_down_with_its_own_words(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "broken").mkdir()
    with running(tmp_path, *words(tmp_path, "broken"), environ=environ) as daemon:
        row = wait_for(lambda: row if (row := serving(daemon))["state"] == "down" else None, "the failure")
        assert "`vllm serve` ended with status 1" in row["detail"]
        assert "no such model" in row["detail"]


def test_where_it_is_not_installed_the_start_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    with pytest.raises(AssertionError, match="vllm is not installed") as caught:
        Daemon(tmp_path, *words(tmp_path), environ={"PATH": "/usr/bin:/bin"}).start()
    assert "hint: pip install vllm" in str(caught.value)


@pytest.mark.parametrize(("given", "what"), [((), "no model to serve"), (("nowhere",), "no model at")])
def test_without_a_model_the_start_is_refused(
    tmp_path: Path, environ: dict[str, str], given: tuple[str, ...], what: str
) -> None:
    asked = words(tmp_path, *given) if given else ("--engine", "vllm")
    with pytest.raises(AssertionError, match=what):
        Daemon(tmp_path, *asked, environ=environ).start()


@pytest.fixture
def attached(environ: dict[str, str], tmp_path: Path) -> Iterator[int]:
    """A `vllm serve` of somebody else's; its port."""
    port = free_port()
    command = [tmp_path / "bin" / "vllm", "serve", "m", "--host", "127.0.0.1", "--port", str(port)]
    more = {"VLLM_API_KEY": "theirs", "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen([*command, "--served-model-name", "weights"], env=os.environ | environ | more)
    url = f"http://127.0.0.1:{port}/health"
    wait_for(lambda: _answers(url) or None, "vllm")
    yield port
    os.kill(told(environ)["worker"], signal.SIGKILL)
    program.kill()
    program.wait()


def test_one_that_runs_already_is_an_upstream(attached: int, tmp_path: Path) -> None:
    (tmp_path / "reef.toml").write_text(
        f'[[upstream]]\nname = "gpu"\nkind = "vllm"\nbase_url = "http://127.0.0.1:{attached}"\n'
        'model = "weights"\napi_key_env = "GPU_KEY"\n'
    )
    with running(tmp_path, environ={"GPU_KEY": "theirs"}) as daemon:
        assert post(daemon, "/v1/chat/completions").status_code == 200
        assert (serving(daemon)["kind"], serving(daemon)["name"]) == ("vllm", "gpu")
        refused = post(daemon, "/v1/messages", "too long")
        assert refused.status_code == 400
        assert "prompt is too long" in refused.json()["error"]["message"]
        assert refused.json()["type"] == "error"


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
