"""The engine contract, of the child: it comes back when it dies, rests when nobody asks, and never outlives
its daemon."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reef.errors import Unavailable, UpstreamFailed
from tests.daemon.runtimes.engines import LETTER, LONG, READY_S, Make, request_of, said, started, until
from tests.processes import is_running
from tests.tiny_gguf import tiny_model


def test_while_it_loads_it_says_when_to_come_back(make: Make) -> None:
    async def scene() -> None:
        engine = make()
        assert engine.state().state == "loading"
        with pytest.raises(Unavailable, match="is loading") as caught:
            await engine.send(request_of("chat"))
        assert caught.value.retry_after_s >= 1
        async with started(engine):
            assert (await said(engine, request_of("chat")))[0] == 200

    asyncio.run(scene())


def test_a_killed_child_comes_back(make: Make) -> None:
    async def scene() -> None:
        async with started(make()) as engine:
            first = engine.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            await until(engine, "down")
            with pytest.raises(Unavailable, match="signal 9") as caught:
                await engine.send(request_of("chat"))
            assert caught.value.retry_after_s >= 1
            await until(engine, "ready")
            assert engine.pid != first
            assert (await said(engine, request_of("chat")))[0] == 200

    asyncio.run(scene())


def test_a_child_killed_in_the_middle_of_an_answer_is_an_upstream_failure(
    make: Make,
) -> None:
    async def scene() -> None:
        async with started(make(context=LONG)) as engine:
            long = {"max_tokens": LONG, "logit_bias": LETTER}
            response = await engine.send(request_of("chat", stream=True, **long))
            body = aiter(response.body)
            await anext(body)
            os.kill(engine.pid or 0, signal.SIGKILL)
            with pytest.raises(UpstreamFailed, match="restarting"):
                _ = [chunk async for chunk in body]
            await response.close()

    asyncio.run(scene())


def test_a_broken_file_is_down_with_a_reason_and_tried_again_slowly(make: Make, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny_model().read_bytes()[:5000])

    async def scene() -> tuple[str, list[float]]:
        engine = make(broken)
        await engine.start()
        seen: dict[int, float] = {}
        async with asyncio.timeout(READY_S):
            while len(seen) < 3:
                if (pid := engine.pid) is not None:
                    seen.setdefault(pid, time.monotonic())
                await asyncio.sleep(0.01)
        await until(engine, "down")
        with pytest.raises(Unavailable, match="is down"):
            await engine.send(request_of("chat"))
        detail = engine.state().detail
        await engine.close()
        return detail, list(seen.values())

    detail, (first, second, third) = asyncio.run(scene())
    assert "could not load" in detail
    assert str(broken) in detail
    assert second - first >= 0.4
    assert third - second >= 0.9


def test_closing_ends_the_child(make: Make) -> None:
    async def scene() -> int:
        async with started(make()) as engine:
            return engine.pid or 0

    assert not is_running(asyncio.run(scene()))


def test_closing_while_it_loads_ends_the_child(make: Make) -> None:
    async def scene() -> int:
        engine = make()
        await engine.start()
        while engine.pid is None:
            await asyncio.sleep(0.001)
        pid = engine.pid
        await engine.close()
        return pid

    assert not is_running(asyncio.run(scene()))


PARENT = """
import asyncio, sys
from pathlib import Path
from daemon.runtimes.engine.process import EngineConfig, EngineProcess

async def main():
    config = EngineConfig("tiny", Path(sys.argv[1]), context=512, parallel=1, threads=1)
    served = lambda url, key: print(process.pid, flush=True)
    process = EngineProcess(config, Path(sys.argv[2]), on_ready=served, on_down=print)
    process.start()
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_killed_daemon_leaves_no_child(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PARENT, str(tiny_model()), str(tmp_path / "engine.log")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    deadline = time.monotonic() + 5
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)


def test_without_requests_it_is_unloaded_and_the_next_request_loads_it_again(make: Make) -> None:
    async def scene() -> None:
        async with started(make(idle=0.3)) as engine:
            first = engine.pid
            response = await engine.send(request_of("chat"))
            await asyncio.sleep(0.5)
            assert is_running(first or 0), "an answer is under way"
            _ = [chunk async for chunk in response.body]
            await response.close()
            async with asyncio.timeout(READY_S):
                while is_running(first or 0):
                    await asyncio.sleep(0.01)
            assert engine.state().state == "ready"
            assert "unloaded" in engine.state().detail
            with pytest.raises(Unavailable, match="is loading") as caught:
                await engine.send(request_of("chat"))
            assert caught.value.retry_after_s >= 1
            assert engine.state().state == "loading"
            async with asyncio.timeout(READY_S):
                while engine.pid == first or engine.state().state != "ready":
                    await asyncio.sleep(0.01)
            assert (await said(engine, request_of("chat")))[0] == 200

    asyncio.run(scene())


def test_closing_what_is_unloaded(make: Make) -> None:
    async def scene() -> None:
        async with started(make(idle=0.05)) as engine:
            assert (await said(engine, request_of("chat")))[0] == 200
            async with asyncio.timeout(READY_S):
                while "unloaded" not in engine.state().detail:
                    await asyncio.sleep(0.01)

    asyncio.run(scene())
