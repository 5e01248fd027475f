"""What `reef up` says of a local model, with a fake daemon that has just been started."""

from pathlib import Path
from typing import Any

import pytest

from reef_cli import lifecycle
from reef_cli.commands import up as command
from tests.cli.canned import STATUS
from tests.cli.conftest import Ran, RunReef
from tests.fake_daemon import TOKEN, FakeDaemon

WHY = "it could not load /m.gguf: no (error loading model: tensor 'x' is not within the file bounds)"


def engine(state: str, detail: str = "") -> dict[str, Any]:
    row = {
        "name": "engine",
        "kind": "engine",
        "state": state,
        "model": "m",
        "url": "/m.gguf",
        "detail": detail,
    }
    return {**STATUS, "serving": {"why": "as configured", "upstreams": [row]}}


@pytest.fixture
def up(reef: RunReef, fake: FakeDaemon, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`reef up` of a daemon that tells these states, one after another; the last one stays."""
    monkeypatch.setenv("REEF_TOKEN", TOKEN)
    monkeypatch.setattr(lifecycle, "start", lambda *_, **__: lifecycle.Started(4711, fake.url))
    monkeypatch.setattr(command, "_LOOK_S", 0.0)
    fake.routes["GET /v1/models"] = {"object": "list", "data": []}

    def run(*told: dict[str, Any]) -> Ran:
        left = list(told)
        fake.routes["GET /reef/status"] = lambda _: left.pop(0) if len(left) > 1 else left[0]
        return reef("up")

    return run


def test_a_model_that_cannot_be_loaded_fails_with_what_its_log_says(up: Any) -> None:
    ran = up(engine("loading"), engine("loading"), engine("down", WHY))
    assert ran.code == 1
    assert f"error: {WHY}" in ran.err
    assert "hint: see `reef logs`" in ran.err
    assert "--reef.model_path FILE" in ran.err
    assert WHY not in ran.out, "once is enough"


def test_a_model_that_is_there_soon_is_waited_for(up: Any) -> None:
    ran = up(engine("loading"), engine("ready"))
    assert (ran.code, "engine (engine, ready): m at /m.gguf\n" in ran.out) == (0, True)


def test_a_model_that_takes_long_loads_on(up: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_VERDICT_S", 0.05)
    ran = up(engine("loading"))
    assert (ran.code, "engine (engine, loading): m" in ran.out) == (0, True)


@pytest.mark.parametrize(
    "words",
    [
        ("--upstream", "--upstream", "http://h"),
        ("--api", "chat", "--api", "--port", "1"),
        ("--model", "-x"),
    ],
)
def test_a_flag_for_a_value_is_refused_in_words(reef: RunReef, words: tuple[str, ...]) -> None:
    for verb in ("up", "serve"):
        ran = reef(verb, *words)
        assert ran.code == 2
        assert "needs a value, not `-" in ran.err
        assert "usage:" not in ran.err
        assert "starting" not in ran.err
