"""Halves of surrogate pairs and numbers that are none, which some clients and models write: nothing is lost,
and nobody who reads it stumbles."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from daemon.wire.codec import codec_for
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS
from tests.e2e.running import running, wait_for
from tests.stub_provider import Raw, StubProvider

ANSWER = (
    '{"id":"chatcmpl-1","object":"chat.completion","model":"m\\ud83d","choices":[{"index":0,"finish_reason":'
    '"stop","message":{"role":"assistant","content":"half a \\ud800"}}],"odd":NaN}'
)
BODY = '{"model":"m\\ud83d","temperature":NaN,"messages":[{"role":"user","content":"findme \\ud83d end"}]}'


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[httpx.Client, str]]:
    with (
        StubProvider(lambda _: Raw((ANSWER.encode(),), "application/json")) as stub,
        running(tmp_path, "--upstream", stub.url, "--model", "m") as daemon,
        daemon.client() as client,
    ):
        answer = client.post(
            "/v1/chat/completions", content=BODY, headers={"content-type": "application/json"}
        )
        assert (answer.status_code, answer.text) == (200, ANSWER)
        assert stub.asked[0].body.decode() == BODY
        yield client, answer.headers["x-reef-agent-record-id"]


def test_what_was_said_can_be_read(asked: tuple[httpx.Client, str]) -> None:
    client, receipt = asked
    for path in (f"/reef/records/{receipt}", f"/reef/scenarios/default/records/{receipt}"):
        payload = client.get(path).raise_for_status().json()["payload"]
        assert payload["messages"][0]["content"] == "findme \ud83d end"
        assert payload["temperature"] is None
    for path in ("/reef/records?payload=1", "/reef/scenarios/default/records", "/reef/records?text=findme"):
        (record,) = client.get(path).raise_for_status().json()["records"]
        assert (record["agent_record_id"], record["status"], record["model"]) == (receipt, "complete", "m?")
    raw = client.get(f"/reef/scenarios/default/records/{receipt}?raw=true").raise_for_status().json()["raw"]
    assert json.loads(json.dumps(raw)) == raw
    report = {"references": [receipt], "score": 0, "feedback": "no"}
    assert client.post("/reef/report", json=report).status_code in (200, 201)


def test_a_path_without_v1_says_what_is_missing(asked: tuple[httpx.Client, str]) -> None:
    answer = asked[0].post("/chat/completions", content=BODY)
    assert answer.status_code == 404
    assert "/v1" in answer.json()["error"]["hint"]


ASKED = {
    "chat": {
        "messages": [{"role": "user", "content": [{"type": "odd\ud83d"}, {"type": "text", "text": "hi"}]}]
    },
    "messages": {"messages": [{"role": "user", "content": "hi", "odd\ud83d": 1}], "max_tokens": 9},
    "responses": {"input": [{"role": "user", "content": "hi"}, {"type": "odd\ud83d"}]},
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [False, True])
def test_over_a_bridge_it_is_told_in_what_was_left_out(
    tmp_path: Path, dialect: Dialect, stream: bool
) -> None:
    spoken = "messages" if dialect == "chat" else "chat"
    config = tmp_path / "reef.toml"
    with StubProvider() as stub:
        config.write_text(
            f'[[upstream]]\nname = "u"\nbase_url = "{stub.url}"\nmodel = "m"\napi = ["{spoken}"]\n'
        )
        with running(tmp_path) as daemon, daemon.client() as client:
            body = json.dumps({"model": "m", "stream": stream, "half\ud83d": 1, **ASKED[dialect]})
            kind = {"content-type": "application/json"}
            answer = client.post(PATHS[dialect], content=body, headers=kind).raise_for_status()
            assert codec_for(dialect).parse(answer.content, stream=stream).text
            receipt = answer.headers["x-reef-agent-record-id"]
            record = client.get(f"/reef/records/{receipt}").raise_for_status().json()
            assert (record["status"], "half?" in record["dropped"]) == ("complete", True)


STEP = """
[[upstream]]
name = "main"
base_url = "{url}"
model = "m"
[[scenario]]
match = "*"
recipe = "grows"
[recipe.grows]
use = "harness_evolve"
adapter = "chat"
proposers = ["{proposer}"]
batch_size = 1
"""


@pytest.mark.parametrize(("proposer", "score"), [("demonstrations", 1), ("reflect", 0)])
def test_a_step_learns_from_it(tmp_path: Path, proposer: str, score: int) -> None:
    with StubProvider(lambda _: Raw((ANSWER.encode(),), "application/json")) as stub:
        (tmp_path / "reef.toml").write_text(STEP.format(url=stub.url, proposer=proposer))
        with running(tmp_path) as daemon, daemon.client() as client:
            kind = {"content-type": "application/json"}
            answer = client.post("/v1/chat/completions", content=BODY, headers=kind).raise_for_status()
            receipt = answer.headers["x-reef-agent-record-id"]
            report = {"references": [receipt], "score": score, "feedback": "no emoji"}
            client.post("/reef/report", json=report).raise_for_status()

            def step() -> dict[str, Any] | None:
                steps = client.get("/reef/steps?scenario=default").raise_for_status().json()["steps"]
                return steps[0] if steps and steps[0]["state"] in ("waiting", "done") else None

            made = wait_for(step, "a step")
            assert (made["outcome"] == "error", made["error"]) == (False, None)
