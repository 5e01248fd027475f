"""What is said of a child that could not load its model."""

import asyncio
import sys
from pathlib import Path

import pytest

from daemon.runtimes.engine.process import EngineConfig, EngineProcess

CHILD = "import sys; sys.stdin.readline(); sys.stderr.write({log!r}); print({line!r})"
BROKEN = "E llama_model_load: error loading model: tensor 'x' is not within the file bounds"


def why_down(folder: Path, log: str, line: str) -> str:
    async def scene() -> str:
        down: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        process = EngineProcess(
            EngineConfig("tiny", folder / "tiny.gguf"),
            folder / "engine.log",
            on_ready=lambda *_: None,
            on_down=lambda why: None if down.done() else down.set_result(why),
            command=(sys.executable, "-c", CHILD.format(log=log, line=line)),
        )
        process.start()
        try:
            return await asyncio.wait_for(down, 20)
        finally:
            await process.stop()

    return asyncio.run(scene())


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (f"loading\n{BROKEN}\nE failed to load\nE exiting\n", BROKEN),
        ("loading\nCUDA out of memory\n\n", "CUDA out of memory"),
    ],
)
def test_the_line_that_says_most_is_shown(tmp_path: Path, log: str, told: str) -> None:
    (tmp_path / "engine.log").write_text(f"{BROKEN} in a life before\n")
    why = why_down(tmp_path, log, '{"error": "it failed"}')
    assert why == f"it could not load {tmp_path / 'tiny.gguf'}: it failed ({told})"


def test_a_child_that_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_text("of a life before\n")
    assert why_down(tmp_path, "", "") == "it ended with status 0"
