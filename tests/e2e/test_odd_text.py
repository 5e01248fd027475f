"""Halves of surrogate pairs and numbers that are none, which some clients and models write: nothing is lost,
and nobody who reads it stumbles."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.running import running
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
