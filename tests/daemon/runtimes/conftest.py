"""One engine of each kind that is installed; `test_engine.py` names those that are not."""

from pathlib import Path

import pytest

from daemon.runtimes.engine.process import EngineConfig
from daemon.runtimes.engine.runtime import Engine
from tests.daemon.runtimes.engines import CONTEXT, INSTALLED, Make
from tests.tiny_gguf import tiny_model


@pytest.fixture(params=INSTALLED)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    kind: str = request.param

    def made(path: Path | None = None, *, context: int = CONTEXT, idle: float | None = None) -> Engine:
        config = EngineConfig(
            "tiny", path or tiny_model(), context=context, parallel=2, threads=1, engine=kind
        )
        return Engine(config, tmp_path / "logs", idle_unload_s=idle)

    return made
