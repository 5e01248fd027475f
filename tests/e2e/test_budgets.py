"""Budgets in a real daemon: the refusal as SDKs see it, the record, the events, the status, a restart."""

from collections.abc import Iterator
from pathlib import Path

import anthropic
import openai
import pytest

from reef_cli.render.status import status as rendered
from tests.e2e.running import TOKEN, Daemon, running, wait_for
from tests.e2e.test_growth import listening, named
from tests.stub_provider import StubProvider

CONFIG = """
[[upstream]]
name = "main"
base_url = "{url}"

[[price]]
model = "m"
input = 100000
output = 0

[[budget]]
match = "paid"
usd_per_day = 0.4
hard = true

[[budget]]
tokens_per_day = 8
"""
CHAT = [{"role": "user", "content": "one two"}]


@pytest.fixture
def stub() -> Iterator[StubProvider]:
    with StubProvider() as provider:
        yield provider


def refused(daemon: Daemon) -> list[openai.RateLimitError | anthropic.RateLimitError]:
    """What the SDKs raise in each dialect. They are left their own retries."""
    paid = {"x-reef-scenario": "paid"}
    found: list[openai.RateLimitError | anthropic.RateLimitError] = []
    with (
        openai.OpenAI(base_url=f"{daemon.url}/v1", api_key=TOKEN, default_headers=paid) as gpt,
        anthropic.Anthropic(base_url=daemon.url, api_key=TOKEN, default_headers=paid) as claude,
    ):
        with pytest.raises(openai.RateLimitError) as chat:
            gpt.chat.completions.create(model="m", messages=CHAT, stream=True)
        with pytest.raises(openai.RateLimitError) as responses:
            gpt.responses.create(model="m", input="hi")
        with pytest.raises(anthropic.RateLimitError) as messages:
            claude.messages.create(model="m", max_tokens=9, messages=CHAT)
        with pytest.raises(openai.RateLimitError):
            gpt.embeddings.create(model="m", input="passed on unrecorded, and not for nothing")
        claude.messages.count_tokens(model="m", messages=CHAT)
    found += [chat.value, responses.value, messages.value]
    return found


def test_a_hard_budget_refuses_and_a_soft_one_tells(tmp_path: Path, stub: StubProvider) -> None:
    (tmp_path / "reef.toml").write_text(CONFIG.format(url=stub.url))
    with running(tmp_path) as daemon, listening(daemon) as heard:
        for scenario in ("paid", "free"):
            daemon.ask("one two", scenario=scenario)
            daemon.ask("one two", scenario=scenario)
        asked = len(stub.asked)
        for error in refused(daemon):
            assert "today's budget of scenario `paid` is spent: $0.40 of $0.40" in str(error)
            assert 0 < int(error.response.headers["retry-after"]) <= 86400
            receipt = error.response.headers["x-reef-agent-record-id"]
            record = daemon.get(f"/reef/records/{receipt}")
            assert (record["status"], record["kind"]) == ("failed", "turn")
            assert record["error"]["type"] == "over_budget"
            assert (record["http_status"], record["upstream"]["name"]) == (None, None)
        assert [each.path for each in stub.asked[asked:]] == ["/v1/messages/count_tokens"]
        daemon.ask("one two", scenario="free")
        told = wait_for(lambda: found if len(found := named(heard, "budget")) == 3 else None, "the events")
        assert {(each["scenario"], each["unit"], each["share"], each["hard"]) for each in told} == {
            ("paid", "usd", 1.0, True),
            ("paid", "tokens", 1.0, False),
            ("free", "tokens", 1.0, False),
        }
        used = named(heard, "record")[0]["usage"]
        assert used["cost"] == pytest.approx(0.2)
        daemon.stop()
        daemon.start()
        status = daemon.get("/reef/status")
        usd, tokens = status["scenarios"]["paid"]["budgets"]
        assert (usd["used"], usd["spent"], usd["unpriced"]) == (pytest.approx(0.4), True, 0)
        assert (tokens["used"], tokens["limit"], tokens["hard"]) == (10, 8, False)
        assert "spent, refused: $0.40 of $0.40 today" in rendered(status)
        assert len(refused(daemon)) == 3
