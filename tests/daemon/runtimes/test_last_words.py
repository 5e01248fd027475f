"""Why an engine could not load a model, read off its log; and that loading for long earns no quick retry."""

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.runtimes.engine import process
from daemon.runtimes.engine.last_words import LONGEST, why_not_loaded
from daemon.runtimes.engine.process import EngineConfig, EngineProcess

WHO = "(Worker pid=4088) ERROR 11-30 16:30:28 [multiproc_executor.py:953] "
WRAPPED = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
PYDANTIC = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"
FURTHER = "For further information visit https://errors.pydantic.dev/2.14/v/value_error"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], ""),
        (["loading", "it went away"], "it went away"),
        (["llama: error loading model: bad magic", "exiting"], "llama: error loading model: bad magic"),
        (["usage: vllm [-h]", "vllm: error: unrecognized arguments: --x"], None),
        ([PYDANTIC, "Value error, max_model_len is too large", FURTHER], "max_model_len is too large"),
        (
            [f"{WHO}    raise RuntimeError(", f"{WHO}RuntimeError: no weights", WRAPPED],
            "RuntimeError: no weights",
        ),
        (
            ["a.b.SafetensorError: header", "Exception: see stack trace for root cause."],
            "a.b.SafetensorError: header",
        ),
        ([f"{WHO}ValueError: first", "x.OtherError: second", "leaked 3 things"], "x.OtherError: second"),
        (["KeyError: 'invalid tool call parser'"], None),
    ],
)
def test_the_line_that_tells_why(lines: list[str], why: str | None) -> None:
    assert why_not_loaded(lines) == (lines[-1] if why is None else why)


@given(st.lists(st.text(max_size=400)))
def test_whatever_the_log_says(lines: list[str]) -> None:
    assert len(why_not_loaded(lines)) <= LONGEST


def test_a_child_that_fails_after_long_loading_is_tried_again_ever_more_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STEADY_AFTER_S", 0.0)
    delays: list[float] = []
    doze = asyncio.sleep

    async def sleep(delay: float) -> None:
        delays.append(delay)
        await doze(0)

    async def scene() -> None:
        enough = asyncio.Event()
        downs: list[str] = []

        def down(why: str) -> None:
            downs.append(why)
            if len(downs) == 3:
                enough.set()

        failing = (sys.executable, "-c", 'print(\'{"error": "no"}\')')
        config = EngineConfig("m", tmp_path)
        engine = EngineProcess(
            config, tmp_path / "log", on_ready=lambda *_: None, on_down=down, command=failing
        )
        monkeypatch.setattr(asyncio, "sleep", sleep)
        engine.start()
        await asyncio.wait_for(enough.wait(), 30)
        await engine.stop()
        assert downs[0] == f"it could not load {tmp_path}: no"

    asyncio.run(scene())
    assert delays[:2] == [process.FIRST_DELAY_S, process.FIRST_DELAY_S * 2]
