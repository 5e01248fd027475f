"""`vllm serve` as a child of a real daemon. `tests/fake_vllm.py` stands for the program."""

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
from tests.e2e.terminal import Terminal
from tests.processes import is_running

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = {
    "/v1/chat/completions": {"type": "function", "function": {"name": "weather", "parameters": CITY}},
    "/v1/messages": {"name": "weather", "input_schema": CITY},
    "/v1/responses": {"type": "function", "name": "weather", "parameters": CITY},
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A PATH with a `vllm` on it."""
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport runpy\nrunpy.run_module('tests.fake_vllm', run_name='__main__')\n"
    )
    program.chmod(0o755)
    for name in ("weights", "broken"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
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


def post(daemon: Daemon, path: str, text: str = "hello", **more: object) -> httpx.Response:
    asked: dict[str, object] = {"model": "weights", "input" if path == "/v1/responses" else "messages": text}
    if path == "/v1/responses":
        asked["max_output_tokens"] = 2
    else:
        asked |= {"messages": [{"role": "user", "content": text}], "max_tokens": 2}
    with daemon.client() as client:
        return client.post(path, json=asked | more)


def said(answer: httpx.Response) -> str:
    text: str = answer.json()["error"]["message"]
    return text


def test_it_is_started_watched_and_ended(tmp_path: Path, environ: dict[str, str]) -> None:
    go = tmp_path / "go"
    more = ("--engine.args", '["--enable-auto-tool-choice"]', "--engine.context", "4096")
    with running(tmp_path, *words(tmp_path), *more, environ=environ | {"FAKE_VLLM_GO": str(go)}) as daemon:
        assert (serving(daemon)["kind"], serving(daemon)["state"]) == ("vllm", "loading")
        loading = post(daemon, "/v1/messages")
        assert loading.status_code == 503
        assert int(loading.headers["retry-after"]) == 10, "an SDK comes back twice, and it loads for long"
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
            assert "prompt is too long: 5000 tokens > 4096 maximum" in said(refused)
            assert "raise `context` under [engine]" in said(refused)
            assert "reef models" not in refused.text, "that adds no model for vllm"

        os.kill(first["pid"], signal.SIGKILL)
        row = wait_for(lambda: row if (row := serving(daemon))["state"] == "down" else None, "the crash")
        assert row["detail"] == "it ended with status 1 (`vllm serve` ended with status -9)"
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
    with running(tmp_path, *words(tmp_path, "broken"), environ=environ) as daemon:
        row = wait_for(lambda: row if (row := serving(daemon))["state"] == "down" else None, "the failure")
        assert row["detail"].endswith(
            "`vllm serve` ended with status 1 (RuntimeError: Cannot find any weights)"
        )


def test_calls_are_made_by_a_grammar_unless_it_knows_how_its_model_writes_them(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    asked = Path(environ["FAKE_VLLM_TOLD"]).with_suffix(".asked")
    with running(tmp_path, *words(tmp_path), environ=environ) as daemon:
        ready(daemon)
        for path, tool in TOOLS.items():
            answer = post(
                daemon, path, tools=[tool], tool_choice={"type": "any"} if "mess" in path else "required"
            )
            assert answer.status_code == 200, answer.text
            assert '"Paris"' in answer.text.replace("\\", "")
            assert "weather" in answer.text, path
            assert post(daemon, path, tools=[tool]).status_code == 200, path
            assert json.loads(asked.read_bytes())["response_format"]["type"] == "json_schema"
        shape = {"format": {"type": "json_schema", "schema": CITY}}
        assert post(daemon, "/v1/messages", output_config=shape).status_code == 200
        assert json.loads(asked.read_bytes())["output_config"] == shape, "that it holds to by itself"

    own = ("--engine.args", '["--enable-auto-tool-choice", "--tool-call-parser=hermes"]')
    with running(tmp_path, *words(tmp_path), *own, environ=environ) as daemon:
        ready(daemon)
        for path, tool in TOOLS.items():
            assert post(daemon, path, tools=[tool]).status_code == 200, path
            assert json.loads(asked.read_bytes())["tools"] == [tool], path
            demanded = {"type": "any"} if "mess" in path else "required"
            assert post(daemon, path, tools=[tool], tool_choice=demanded).status_code == 200
            assert "response_format" in json.loads(asked.read_bytes()), "it lets arguments be any JSON"


def test_where_it_is_not_installed_the_start_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text("{}")
    with pytest.raises(AssertionError, match="vllm is not installed") as caught:
        Daemon(tmp_path, *words(tmp_path), environ={"PATH": "/usr/bin:/bin"}).start()
    assert "hint: pip install vllm" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "what"),
    [((), "no model to serve"), (("nowhere",), "no model at"), (("bin",), "it has no config.json")],
)
def test_without_a_model_the_start_is_refused(
    tmp_path: Path, environ: dict[str, str], given: tuple[str, ...], what: str
) -> None:
    asked = words(tmp_path, *given) if given else ("--engine", "vllm")
    with pytest.raises(AssertionError, match=what):
        Daemon(tmp_path, *asked, environ=environ).start()


TOO_LONG = {
    "too long": "prompt is too long: 5000 tokens > 4096 maximum",
    "endless": "prompt is too long: at least 4097 tokens > 4096 maximum (200148 characters)",
    "full": "prompt is too long: it leaves no room for an answer in the model's window",
}


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
        for path in TOOLS:
            for text, why in TOO_LONG.items():
                refused = post(daemon, path, text)
                assert refused.status_code == 400
                assert why in said(refused), path
                assert "--max-model-len" in said(refused), "that is what its owner can raise"
            missing = post(daemon, path, model="nope")
            assert missing.status_code == 404
            assert "The model `nope` does not exist" in said(missing)
            assert missing.json()["error"]["type"] == "not_found_error"
        counted = post(daemon, "/v1/messages/count_tokens")
        assert (counted.status_code, counted.headers["x-reef-estimate"]) == (200, "1")
        with daemon.client(**{"content-type": "application/x-www-form-urlencoded"}) as curl:
            form = curl.post("/v1/messages", content=b'{"model":"weights","max_tokens":2,"messages":[]}')
        assert form.status_code == 200, "vLLM reads JSON only where it is called so"
        none = post(daemon, "/v1/chat/completions", max_tokens=0)
        assert said(none).startswith("max_tokens must be at least 1"), "the prompt is not to blame"
        greedy = post(daemon, "/v1/messages", max_tokens=32000)
        assert "cannot be greater than max_model_len=4096" in said(greedy)
        assert "ask for fewer" in said(greedy)
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]
        seen = post(daemon, "/v1/chat/completions", messages=[{"role": "user", "content": picture}])
        assert (seen.status_code, "the model `weights` reads text only" in said(seen)) == (400, True)


def test_up_says_which_key_it_does_not_accept(attached: int, here: Terminal) -> None:
    here.environ["KEY"] = "wrong"
    (here.folder / "reef.toml").write_text(
        '[reef]\nport = 0\n[[upstream]]\nname = "gpu"\nkind = "vllm"\napi_key_env = "KEY"\n'
        f'base_url = "http://127.0.0.1:{attached}"\n'
    )
    assert here.reef("up", code=1).err.endswith("hint: `reef down`, set KEY to the right key, `reef up`\n")


def test_a_key_that_it_does_not_accept_is_the_upstreams_trouble(attached: int, tmp_path: Path) -> None:
    """A client would take vLLM's own words for a refusal of Reef's token."""
    (tmp_path / "reef.toml").write_text(
        f'[[upstream]]\nname = "gpu"\nkind = "vllm"\nbase_url = "http://127.0.0.1:{attached}"\n'
        'model = "weights"\napi_key_env = "GPU_KEY"\n'
    )
    with running(tmp_path, environ={"GPU_KEY": "wrong"}) as daemon:
        for path in TOOLS:
            refused = post(daemon, path)
            assert refused.status_code == 401
            assert "does not accept the key it is given (from GPU_KEY)" in said(refused)
        assert serving(daemon)["state"] == "down"


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
