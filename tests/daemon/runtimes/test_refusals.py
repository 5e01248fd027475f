"""What vLLM's refusals become; the words are those of its versions 0.6 to 0.32."""

import asyncio
import json

import pytest

from daemon.runtimes.engine.kinds import KINDS
from daemon.runtimes.engine.refusals import restated
from daemon.runtimes.replayed import once
from reef.runtime import ProviderRequest, ProviderResponse

WINDOW = "This model's maximum context length is 4096 tokens. However, "


def refused(message: str, **asked: object) -> str:
    body = json.dumps({"error": {"message": message, "code": 400}}).encode()
    request = ProviderRequest("chat", "/chat/completions", (), json.dumps(asked).encode())

    async def scene() -> ProviderResponse:
        return await restated(ProviderResponse(400, [], once(body)), request, "m", wider="or wait")

    async def text() -> bytes:
        answer = await scene()
        return b"".join([chunk async for chunk in answer.body])

    said: str = json.loads(asyncio.run(text()))["error"]["message"]
    return said


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (f"{WINDOW}your request has 5000 input tokens.", "5000 tokens > 4096 maximum"),
        (
            f"{WINDOW}you requested 5100 tokens (5000 in the messages, 100 in the completion).",
            "5000 tokens > 4096",
        ),
        (
            f"{WINDOW}your prompt contains at least 4097 input tokens, which",
            "at least 4097 tokens > 4096 maximum",
        ),
        (
            f"{WINDOW}your prompt contains 200148 characters (more than 82944 characters, which is the upper "
            "bound for 4096 input tokens).",
            "at least 4097 tokens > 4096 maximum (200148 characters)",
        ),
        (
            "The engine prompt length 4096 exceeds the max_model_len 4096. Please reduce prompt.",
            "it leaves no room",
        ),
        (
            "The decoder prompt (length 4096) plus the number of requested output tokens (at least 1) is "
            "longer than the maximum model length of 4096.",
            "it leaves no room",
        ),
        ("max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)", "it leaves no room"),
    ],
)
def test_a_prompt_that_is_too_long_is_called_that(message: str, why: str) -> None:
    said = refused(message, max_tokens=9)
    assert said.startswith(f"prompt is too long: {why}")
    assert "shorten the conversation, or wait" in said


@pytest.mark.parametrize(
    "message",
    [
        "'max_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your "
        "request has 12 input tokens (5000 > 4096 - 12).",
        f"{WINDOW}you requested 5000 tokens (1000 in the messages, 4000 in the completion).",
        "max_tokens=5000 cannot be greater than max_model_len=4096. Please request fewer output tokens.",
        "max_tokens must be at least 1, got -3.",
        "temperature must be non-negative, got -3.0.",
    ],
)
def test_another_complaint_is_not(message: str) -> None:
    assert refused(message, max_tokens=9).startswith(message)


def test_no_answer_was_asked_for() -> None:
    said = refused("max_tokens must be at least 1, got 0.", max_tokens=0)
    assert said.startswith("max_tokens must be at least 1")


@pytest.mark.parametrize(
    ("args", "calls"),
    [
        ((), "all"),
        (("--enforce-eager", "--tool-call-parser", "hermes"), "all"),
        (("--enable-auto-tool-choice", "--tool-call-parser", "hermes"), "forced"),
        (("--enable_auto_tool_choice", "--tool_call_parser=hermes"), "forced"),
    ],
)
def test_who_reads_the_calls_that_are_allowed(args: tuple[str, ...], calls: str) -> None:
    assert KINDS["vllm"].started_with(args).calls == calls
    assert KINDS["xllamacpp"].started_with(args).calls == "forced"
    assert KINDS["llama-cpp-python"].started_with(args).calls == "all"
