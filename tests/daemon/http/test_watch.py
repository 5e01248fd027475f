"""What is watched for a client that leaves holds on to nothing afterwards."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from daemon.http import watch
from daemon.records.draft import Draft
from daemon.serving.call import Call
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import House
from tests.stub_provider import StubProvider


@contextmanager
def left_to_the_collector() -> Iterator[list[object]]:
    """What only the collector can free of what is made inside."""
    found: list[object] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_took_long_is_let_go_at_once(
    client: httpx.Client, home: House, stub: StubProvider, stream: bool
) -> None:
    stub.delay_s = watch.BEGIN_S * 2
    with left_to_the_collector() as found:
        for _ in range(3):
            client.post(PATHS["chat"], json=body_of("chat", stream=stream)).raise_for_status()
        client.get("/v1/models").raise_for_status()  # by then the watch of the last one has ended
        home.records.drafts.clear()
        home.seen.clear()
    assert [type(each).__name__ for each in found if isinstance(each, Call | Draft)] == []
