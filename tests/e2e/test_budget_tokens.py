"""Budgets in tokens in a real daemon: the same traffic counts alike in every dialect, and what tells no usage
is said to be missing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reef_cli.render.events import event
from reef_cli.render.status import status as rendered
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.http.test_metrics import read
from tests.daemon.records.test_used import TRAFFIC
from tests.e2e.running import Daemon, running, wait_for
from tests.e2e.test_growth import listening, named
from tests.stub_dialects import sse
from tests.stub_provider import Raw, StubProvider

CONFIG = """
[[upstream]]
name = "main"
base_url = "{url}"

[[budget]]
tokens_per_day = 70015
hard = true
"""


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        yield provider


def ask(daemon: Daemon, dialect: str, scenario: str, **more: object) -> int:
    with daemon.client(x_reef_scenario=scenario) as client:
        return client.post(PATHS[dialect], json=body_of(dialect, **more)).status_code


def used(daemon: Daemon, scenario: str) -> tuple[int, int]:
    (row,) = daemon.get("/reef/status")["scenarios"][scenario]["budgets"]
    return row["used"], row["uncounted"]


def test_the_same_traffic_spends_a_hard_budget_in_every_dialect(tmp_path: Path, stub: StubProvider) -> None:
    (tmp_path / "reef.toml").write_text(CONFIG.format(url=stub.url))
    stub.answer = lambda asked: Raw((json.dumps(TRAFFIC[asked.dialect]).encode(),))
    with running(tmp_path) as daemon:
        for dialect in TRAFFIC:
            assert ask(daemon, dialect, dialect) == 200
            wait_for(lambda name=dialect: used(daemon, name)[0] or None, "the record")
            assert ask(daemon, dialect, dialect) == 429
        daemon.stop()
        daemon.start()
        for dialect in TRAFFIC:
            assert used(daemon, dialect) == (70_015, 0)
            assert ask(daemon, dialect, dialect) == 429


def test_streams_without_usage_are_told_of(tmp_path: Path, stub: StubProvider) -> None:
    (tmp_path / "reef.toml").write_text(CONFIG.format(url=stub.url))
    said = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
    stub.answer = lambda asked: Raw((sse(said), sse("[DONE]")), "text/event-stream")
    with running(tmp_path) as daemon, listening(daemon) as heard:
        for _ in range(2):
            assert ask(daemon, "chat", "s", stream=True) == 200
        wait_for(lambda: used(daemon, "s") == (0, 2) or None, "both records")
        status = rendered(daemon.get("/reef/status"))
        assert "warning: the budgets of `s` lack 2 answers of today, which told no usage" in status
        assert "include_usage" in daemon.log.read_text()
        (told,) = wait_for(lambda: named(heard, "budget") or None, "the event")
        assert "an answer without usage is in no budget: 0 of 70,015 tokens" in event("budget", told)
        daemon.stop()
        daemon.start()
        assert used(daemon, "s") == (0, 2)


def test_the_series_of_tokens_add_up(tmp_path: Path, stub: StubProvider) -> None:
    (tmp_path / "reef.toml").write_text(CONFIG.format(url=stub.url))
    stub.answer = lambda asked: Raw((json.dumps(TRAFFIC[asked.dialect]).encode(),))
    with running(tmp_path) as daemon:
        for dialect in TRAFFIC:
            assert ask(daemon, dialect, dialect) == 200
        with daemon.client(x_reef_scenario="messages") as client:
            client.post("/v1/messages/count_tokens", json=body_of("messages")).raise_for_status()
            text = client.get("/metrics").text
    found = {
        (labels["scenario"], labels["direction"]): count
        for name, labels, count in read(text)
        if name == "reef_tokens_total"
    }
    for dialect in TRAFFIC:
        series = [found[dialect, direction] for direction in ("input", "cached", "output")]
        assert series == [20_010, 50_000, 5]
