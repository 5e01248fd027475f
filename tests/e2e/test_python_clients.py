"""`reef.Client` and `reef.AsyncClient` against a daemon that `reef up` started: every method, both kinds."""

import asyncio
import base64
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reef
from reef._sse import Event
from reef.errors import Conflict, Invalid, NotFound, Unsupported
from tests.e2e.running import wait_for
from tests.e2e.terminal import Terminal, terminal
from tests.stub_provider import Asked, StubProvider

SENTENCE = "Use metric units."
LATER = {"train"}
"""Methods whose route a later release brings."""


def metric(asked: Asked) -> str:
    return "21 C" if SENTENCE in asked.system else "70 F"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("python")
    (folder / "reef.toml").write_text(
        '[[scenario]]\nmatch = "plain-*"\nrecipe = "record"\n'
        '[[scenario]]\nmatch = "*"\nrecipe = "grow"\n[recipe.grow]\nproposers = ["feedback"]\n'
    )
    with StubProvider(metric) as stub, terminal(folder) as found:
        yield found.up("--upstream", stub.url, "--model", "M")


class Noted:
    """A client that notes which methods were called."""

    def __init__(self, client: Any, called: set[str]) -> None:
        self._client = client
        self._called = called

    def __getattr__(self, name: str) -> Any:
        self._called.add(name)
        return getattr(self._client, name)


class Blocking:
    """An `AsyncClient` whose methods are waited for."""

    def __init__(self, client: reef.AsyncClient, run: Callable[[Any], Any]) -> None:
        self._client = client
        self._run = run

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)

        def call(*words: Any, **options: Any) -> Any:
            result = found(*words, **options)
            return self._iterate(result) if inspect.isasyncgen(result) else self._run(result)

        return call if callable(found) else found

    def _iterate(self, events: AsyncIterator[Event]) -> Iterator[Event]:
        async def following() -> Event | None:
            return await anext(events, None)

        while (event := self._run(following())) is not None:
            yield event


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def called() -> set[str]:
    return set()


@pytest.fixture
def client(here: Terminal, kind: str, called: set[str]) -> Iterator[Any]:
    if kind == "sync":
        with reef.Client(home=here.home) as client:
            yield Noted(client, called)
        return
    with asyncio.Runner() as runner:
        asynchronous = reef.AsyncClient(home=here.home)
        yield Noted(Blocking(asynchronous, runner.run), called)
        runner.run(asynchronous.close())


def ready(client: Any, scenario: str, step: int) -> dict[str, Any]:
    """A step that waits for a review."""

    def look() -> dict[str, Any] | None:
        rows = client.steps(scenario)["steps"]
        return next((row for row in rows if row["step"] == step and row["state"] == "waiting"), None)

    return wait_for(look, "the step")


def test_every_method(client: Any, kind: str, called: set[str], here: Terminal) -> None:
    name = f"story-{kind}"
    created = client.create_scenario(name)
    assert client.create_scenario(name) == created
    assert name in [row["scenario"] for row in client.scenarios()["scenarios"]]
    assert client.contract(name)["training_mode"] == "hybrid"
    assert client.update_scenario(name, training_mode="auto")["training_mode"] == "auto"

    answer, receipt = client.chat("How warm is it?", model="M", scenario=name, tags={"run": "r1"})
    assert answer["choices"][0]["message"]["content"] == "70 F"
    body = {"model": "M", "max_tokens": 5, "messages": [{"role": "user", "content": "And now?"}]}
    second, other = client.post("/v1/messages", body, scenario=name)
    assert second["content"][0]["text"] == "70 F"
    told = client.report([receipt], score=0, feedback=SENTENCE, scenario=name, agent_record_id=f"r-{kind}")
    again = client.report([receipt], score=0, feedback=SENTENCE, scenario=name, agent_record_id=f"r-{kind}")
    assert told["agent_record_id"] == again["agent_record_id"] == f"r-{kind}"
    with pytest.raises(Conflict):
        client.report([receipt], score=1, scenario=name, agent_record_id=f"r-{kind}")
    with pytest.raises(Invalid, match="nothing-of-mine"):
        client.report(["nothing-of-mine"], score=1, scenario=name)
    [listed] = client.reports(name, agent_record_id=f"r-{kind}")["reports"]
    assert listed["references"] == [receipt]

    step = ready(client, name, 1)
    assert client.step(name, 1)["batch"] == [{"report": f"r-{kind}", "receipts": [receipt]}]
    assert f"+{SENTENCE}" in client.diff(name, "HEAD", "step:1")
    with pytest.raises(Conflict):
        client.run_step(name, 1)
    promoted = client.promote(name, step["candidate_id"])
    assert client.harness(name)["release_id"] == promoted["release_id"]
    assert SENTENCE in "".join(client.harness(name)["files"].values())
    assert (
        client.chat("How warm?", model="M", scenario=name).json["choices"][0]["message"]["content"] == "21 C"
    )
    client.rollback(name, "HEAD~1")
    assert [row["operation"] for row in client.releases(name)["releases"]] == [
        "rollback", "promote", "training", "creation"
    ]  # fmt: skip
    assert client.harness(name, release_id=promoted["release_id"])["content_id"] == promoted["content_id"]
    story = client.explain(receipt)
    assert story["verdicts"][0]["step"] == 1
    assert story["release"]["release_id"] == created["release_id"]

    client.report([other], score=0, feedback="Be brief.", scenario=name)
    client.reject(name, ready(client, name, 4)["candidate_id"], reason="not now")
    assert client.step(name, 4)["decision"] == "rejected by a person: not now"

    assert client.adapters()["adapters"][0]["name"] == "chat"
    assert client.status()["scenarios"][name]["training_mode"] == "auto"
    assert next(client.events(name)).name == "hello"
    assert client.archive(name)["archived"]
    with pytest.raises(NotFound):
        client.contract(name)
    client.create_scenario("plain-1")
    with pytest.raises(Unsupported):
        client.update_scenario("plain-1", training_mode="auto")
    assert "M" in [model["id"] for model in client.models()["data"]]
    client.records()
    client.record(receipt, name)
    assert client.logs(limit=5)["lines"]
    with pytest.raises(NotFound):
        client.cancel_step("plain-1", 1)
    every = {key for key, value in inspect.getmembers(reef.Client, callable) if not key.startswith("_")}
    assert every - called == LATER | {"close", "from_env"}


def test_records_page_by_page(client: Any, kind: str) -> None:
    name = f"pages-{kind}"
    receipts = [
        client.chat([{"role": "user", "content": f"{n} says hé"}], model="M", scenario=name).receipt
        for n in range(5)
    ]
    client.report([receipts[0]], score=1, scenario=name)
    after, found = 0, []
    while rows := (page := client.records(name, after_sequence=after, limit=2))["records"]:
        found += rows
        after = page["next_after_sequence"]
    assert [row["sequence"] for row in found] == sorted(row["sequence"] for row in found)
    assert [row["agent_record_id"] for row in found[:5]] == receipts
    assert [row["request_type"] for row in found] == ["inference"] * 5 + ["report"]
    assert found[0]["payload"]["response"]["choices"][0]["message"]["content"] == "70 F"
    newest = client.records(name, request_type="inference", order="desc", limit=1, payload=False)["records"]
    assert newest[0]["agent_record_id"] == receipts[-1]
    assert "payload" not in newest[0]
    assert client.records(name, after_sequence=after)["records"] == []
    assert {row["scenario"] for row in client.records(limit=1000)["records"]} >= {name}


def test_raw_is_every_byte(here: Terminal, client: Any, kind: str) -> None:
    body = b'{ "model":"M",  "messages":[{"role":"user","content":"h\\u00e9"}], "zzz": 1.50 }'
    with here.http(x_reef_scenario=f"raw-{kind}", content_type="application/json") as http:
        answer = http.post("/v1/chat/completions", content=body)
    receipt = answer.headers["x-reef-agent-record-id"]
    raw = client.record(receipt, f"raw-{kind}", raw=True)["raw"]
    assert base64.b64decode(raw["request"]) == body
    assert base64.b64decode(raw["response"]) == answer.content
    assert "raw" not in client.record(receipt, f"raw-{kind}")


def test_a_training_mode_is_kept(here: Terminal, client: Any, kind: str) -> None:
    client.create_scenario(f"kept-{kind}")
    client.update_scenario(f"kept-{kind}", training_mode="manual")
    boot = json.loads((here.home / "daemon.json").read_text())["boot"]
    upstream = client.status()["serving"]["upstreams"][0]["url"]
    here.reef("down")
    here.up("--upstream", upstream, "--model", "M")
    with reef.Client(home=here.home) as after:
        assert after.contract(f"kept-{kind}")["training_mode"] == "manual"
    assert json.loads((here.home / "daemon.json").read_text())["boot"] != boot


def test_events_go_on_where_they_broke_off(here: Terminal, client: Any, kind: str) -> None:
    name = f"events-{kind}"
    events = client.events(name)
    hello = next(events)
    assert (hello.name, sorted(hello.data)) == ("hello", ["boot", "last"])
    _, receipt = client.chat("one", model="M", scenario=name)
    seen = [next(events)]
    client.chat("two", model="M", scenario=name)
    while [event.name for event in seen].count("record") < 2:
        seen.append(next(events))
    assert all(event.data["scenario"] == name and event.id.startswith(hello.data["boot"]) for event in seen)
    assert "messages" not in json.dumps([event.data for event in seen])
    records = [event for event in seen if event.name == "record"]
    assert records[0].data["agent_record_id"] == receipt

    resumed = client.events(name, last_event_id=records[0].id)
    assert next(resumed).name == "hello"
    rest = [next(resumed) for _ in seen[seen.index(records[0]) + 1 :]]
    assert [event.id for event in rest] == [event.id for event in seen[seen.index(records[0]) + 1 :]]

    upstream = client.status()["serving"]["upstreams"][0]["url"]
    here.reef("down")
    here.up("--upstream", upstream, "--model", "M")
    with reef.Client(home=here.home) as after:
        late = after.events(name, last_event_id=records[0].id)
        assert [next(late).name for _ in range(2)] == ["hello", "gap"]


def test_from_env(here: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REEF_URL", here.url)
    monkeypatch.setenv("REEF_TOKEN", here.token)
    monkeypatch.setenv("REEF_HOME", str(tmp_path / "nothing"))
    with reef.Client.from_env() as client:
        assert client.status()["home"] == str(here.home)

    async def ask() -> Any:
        async with reef.AsyncClient.from_env() as client:
            return await client.status()

    assert asyncio.run(ask())["home"] == str(here.home)
