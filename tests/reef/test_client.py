"""The two clients against a server: what they send, what they read, what they raise."""

import asyncio
import http.client
import inspect
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reef
from reef import AsyncClient, Client
from reef._sse import Event, EventReader
from reef.errors import (
    Conflict,
    DaemonUnreachable,
    Invalid,
    NotFound,
    ReefError,
    Refused,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
    Unsupported,
    UpstreamFailed,
)
from tests.fake_daemon import TOKEN, FakeDaemon, fake_daemon


@pytest.fixture
def fake() -> Iterator[FakeDaemon]:
    with fake_daemon() as running:
        yield running


@pytest.fixture
def client(fake: FakeDaemon) -> Iterator[Client]:
    with Client(fake.url, token=TOKEN) as made:
        yield made


CALLS: list[tuple[str, dict[str, Any], str, dict[str, str], Any]] = [
    ("report", {"references": ["r1"], "score": 0.0}, "POST /reef/report", {},
     {"score": 0.0, "references": ["r1"]}),
    ("report", {"references": "r1", "feedback": {"correction": "x"}}, "POST /reef/report", {},
     {"feedback": {"correction": "x"}, "references": ["r1"]}),
    ("reports", {"state": "pending"}, "GET /reef/reports", {"state": "pending"}, None),
    ("records", {"limit": 5, "order": "desc", "payload": True}, "GET /reef/records",
     {"limit": "5", "order": "desc", "payload": "1"}, None),
    ("records", {"scenario": "a-b"}, "GET /reef/scenarios/a-b/records", {}, None),
    ("record", {"record_id": "r/1", "scenario": "s", "raw": True}, "GET /reef/scenarios/s/records/r%2F1",
     {"raw": "1"}, None),
    ("explain", {"record_id": "r1"}, "GET /reef/records/r1", {}, None),
    ("scenarios", {}, "GET /reef/scenarios", {}, None),
    ("create_scenario", {"name": "s"}, "POST /reef/scenarios", {}, {"name": "s"}),
    ("update_scenario", {"name": "s", "training_mode": "auto"}, "POST /reef/scenarios/s/update", {},
     {"training_mode": "auto"}),
    ("contract", {"scenario": "s"}, "GET /reef/scenarios/s/contract", {}, None),
    ("archive", {"scenario": "s"}, "DELETE /reef/scenarios/s", {}, None),
    ("releases", {"scenario": "s"}, "GET /reef/scenarios/s/releases", {}, None),
    ("rollback", {"scenario": "s", "release_id": "HEAD~1"}, "POST /reef/scenarios/s/rollback", {},
     {"release_id": "HEAD~1"}),
    ("promote", {"scenario": "s", "release_id": "c"}, "POST /reef/scenarios/s/promote", {},
     {"release_id": "c"}),
    ("reject", {"scenario": "s", "release_id": "c", "reason": "no"}, "POST /reef/scenarios/s/reject", {},
     {"release_id": "c", "reason": "no"}),
    ("harness", {"release_id": "step:4"}, "GET /reef/harness", {"release_id": "step:4"}, None),
    ("adapters", {}, "GET /reef/harness/adapters", {}, None),
    ("train", {"text": "be brief"}, "POST /reef/train", {}, {"text": "be brief"}),
    ("status", {}, "GET /reef/status", {}, None),
    ("steps", {"scenario": "s"}, "GET /reef/steps", {"scenario": "s"}, None),
    ("step", {"scenario": "s", "number": 4}, "GET /reef/steps/s/4", {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("method", "arguments", "route", "query", "body"), CALLS, ids=lambda v: str(v)[:24])
def test_each_method_sends_its_route(
    fake: FakeDaemon,
    client: Client,
    method: str,
    arguments: dict[str, Any],
    route: str,
    query: Any,
    body: Any,
) -> None:
    fake.routes[route] = {"ok": 1}
    assert getattr(client, method)(**arguments) == {"ok": 1}

    async def again() -> Any:
        async with AsyncClient(fake.url, token=TOKEN) as other:
            return await getattr(other, method)(**arguments)

    assert asyncio.run(again()) == {"ok": 1}
    for asked in fake.asked:
        assert (f"{asked.method} {asked.path}", asked.query, asked.body) == (route, query, body)
        assert asked.headers["x-reef-token"] == TOKEN


def test_both_clients_have_the_same_methods() -> None:
    def signatures(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert signatures(Client) == signatures(AsyncClient)


def test_inference_answers_with_its_receipt(fake: FakeDaemon, client: Client) -> None:
    fake.routes["POST /v1/chat/completions"] = {"choices": []}
    fake.headers["x-reef-agent-record-id"] = "r1"
    reply = client.chat("hi", model="m", scenario="s", tags={"run": "7"}, temperature=0)
    assert reply == ({"choices": []}, "r1")
    asked = fake.asked[-1]
    assert asked.body == {"messages": [{"role": "user", "content": "hi"}], "model": "m", "temperature": 0}
    assert (asked.headers["x-reef-scenario"], asked.headers["x-reef-tag-run"]) == ("s", "7")


def test_diff_is_text(fake: FakeDaemon, client: Client) -> None:
    fake.routes["GET /reef/scenarios/s/diff"] = "--- a\n+++ b\n"
    assert client.diff("s", "HEAD~1", "HEAD") == "--- a\n+++ b\n"
    assert fake.asked[-1].query == {"from": "HEAD~1", "to": "HEAD"}


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (400, "invalid", Invalid), (401, "unauthorized", Unauthorized), (404, "not_found", NotFound),
        (409, "conflict", Conflict), (413, "too_large", TooLarge), (501, "unsupported", Unsupported),
        (502, "upstream", UpstreamFailed), (503, "unavailable", Unavailable), (504, "timeout", TimedOut),
        (404, "no such type", NotFound), (418, "teapot", ReefError),
    ],
)  # fmt: skip
def test_errors_come_back_as_they_were_raised(
    fake: FakeDaemon, client: Client, status: int, kind: str, expected: type[ReefError]
) -> None:
    fake.routes["GET /reef/status"] = (status, {"error": {"type": kind, "message": "what", "hint": "mend"}})
    with pytest.raises(ReefError) as caught:
        client.status()
    assert type(caught.value) is expected
    assert (caught.value.message, caught.value.hint) == ("what", "mend")


def test_a_refusal_keeps_its_rule_and_a_wait_its_seconds(fake: FakeDaemon, client: Client) -> None:
    fake.routes["GET /reef/status"] = (400, {"error": {"type": "invalid", "message": "no", "rule": "secret"}})
    with pytest.raises(Refused) as refused:
        client.status()
    assert refused.value.rule == "secret"
    fake.headers["Retry-After"] = "9"
    fake.routes["GET /reef/status"] = (503, {"error": {"type": "unavailable", "message": "loading"}})
    with pytest.raises(Unavailable) as wait:
        client.status()
    assert wait.value.retry_after_s == 9


def test_a_wrong_token_says_how_to_mend_it(fake: FakeDaemon) -> None:
    with pytest.raises(Unauthorized) as caught, Client(fake.url, token="wrong") as client:
        client.status()
    assert "REEF_TOKEN" in caught.value.hint


@pytest.mark.parametrize("said", ["<html>", '"text"', "[]"])
def test_what_is_no_daemon_is_told_apart(fake: FakeDaemon, client: Client, said: str) -> None:
    fake.routes["GET /reef/status"] = said
    with pytest.raises(ReefError, match="is not") as caught:
        client.status()
    assert "is this address a Reef daemon?" in caught.value.hint


def test_no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REEF_URL", raising=False)
    monkeypatch.setenv("REEF_HOME", str(tmp_path))
    with pytest.raises(DaemonUnreachable, match="no Reef daemon runs in") as caught:
        Client()
    assert "reef up" in caught.value.hint
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(DaemonUnreachable, match="refused"):
        Client(url).status()

    async def status() -> None:
        async with AsyncClient(url) as client:
            await client.status()

    with pytest.raises(DaemonUnreachable, match="no Reef daemon answers at"):
        asyncio.run(status())


def test_a_stale_reef_url_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setenv("REEF_URL", f"http://127.0.0.1:{free.getsockname()[1]}")
    with pytest.raises(DaemonUnreachable) as caught:
        Client().status()
    assert "unset it" in caught.value.hint


def test_from_env(fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REEF_URL", fake.url)
    monkeypatch.setenv("REEF_TOKEN", TOKEN)
    fake.routes["GET /reef/status"] = {"version": "1"}
    with reef.Client.from_env() as client:
        assert client.status() == {"version": "1"}


def test_the_token_of_a_home_stays_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REEF_TOKEN", raising=False)
    (tmp_path / "token").write_text("secret\n")
    assert Client("http://127.0.0.1:1", home=tmp_path).token == "secret"
    assert Client("http://elsewhere.example", home=tmp_path).token is None


def test_a_proxy_of_the_environment_is_not_asked(
    fake: FakeDaemon, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    fake.routes["GET /reef/status"] = {}
    assert client.status() == {}

    async def status() -> Any:
        async with AsyncClient(fake.url, token=TOKEN) as other:
            return await other.status()

    assert asyncio.run(status()) == {}


def test_a_connection_that_the_daemon_closed_is_opened_anew(fake: FakeDaemon, client: Client) -> None:
    fake.routes["GET /reef/status"] = {}
    fake.headers["connection"] = "close"
    client.status()
    time.sleep(0.05)
    assert client.status() == {}


def test_a_slow_answer_times_out(fake: FakeDaemon) -> None:
    release = threading.Event()
    fake.routes["GET /reef/status"] = lambda asked: release.wait(5) and {}
    with (
        pytest.raises(TimedOut, match="took longer than"),
        Client(fake.url, token=TOKEN, timeout_s=0.05) as client,
    ):
        client.status()

    async def status() -> None:
        async with AsyncClient(fake.url, token=TOKEN, timeout_s=0.05) as other:
            await other.status()

    with pytest.raises(TimedOut):
        asyncio.run(status())
    release.set()


def test_threads_may_share_a_client(fake: FakeDaemon, client: Client) -> None:
    fake.routes["GET /reef/status"] = {"ok": True}
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(10):
                assert client.status() == {"ok": True}
        except (ReefError, AssertionError, http.client.HTTPException) as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


STREAM = (
    b'id: b-1\nevent: hello\ndata: {"boot": "b"}\n\n: comment\n\nid: b-2\nevent: step\ndata: {"step": 4}\n\n'
)
EVENTS = [Event("b-1", "hello", {"boot": "b"}), Event("b-2", "step", {"step": 4})]


def test_events(fake: FakeDaemon, client: Client) -> None:
    fake.routes["GET /reef/events"] = STREAM
    assert list(client.events("s", last_event_id="b-0")) == EVENTS
    assert fake.asked[-1].headers["last-event-id"] == "b-0"

    async def collect() -> list[Event]:
        async with AsyncClient(fake.url, token=TOKEN) as other:
            return [event async for event in other.events()]

    assert asyncio.run(collect()) == EVENTS
    fake.routes["GET /reef/events"] = (503, {"error": {"type": "unavailable", "message": "not now"}})
    with pytest.raises(Unavailable):
        list(client.events())


@given(st.lists(st.integers(0, len(STREAM)), max_size=6), st.booleans())
def test_events_are_the_same_however_the_bytes_come(cuts: list[int], crlf: bool) -> None:
    stream = STREAM.replace(b"\n", b"\r\n") if crlf else STREAM
    reader, found, start = EventReader(), [], 0
    for cut in [*sorted(cuts), len(stream)]:
        found.extend(reader.feed(stream[start:cut]))
        start = max(start, cut)
    assert found == EVENTS


def test_importing_reef_and_its_client_stays_light() -> None:
    code = "import sys, reef, reef.client; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert not loaded & {"httpx", "pydantic", "aiohttp", "typer", "asyncio", "daemon", "yaml"}
