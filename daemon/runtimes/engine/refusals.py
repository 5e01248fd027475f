"""What an engine refuses, said in the dialect that was asked: llama.cpp and vLLM have one shape for all."""

import re

from daemon.runtimes.replayed import once
from daemon.wire.codec import codec_for
from daemon.wire.values import load_object, mapping, string
from reef.errors import Invalid, ReefError
from reef.runtime import Dialect, ProviderResponse

TOO_LONG_HINT = (
    "shorten the conversation, raise `context` under [engine], or serve a model with a longer window: "
    "reef models add"
)
_VLLM_TOO_LONG = re.compile(r"maximum context length is (\d+) tokens?.*?(\d+) (?:input )?tokens", re.DOTALL)
"""vLLM says it in a sentence whose first number is the window's size."""


class PromptTooLong(Invalid):
    """Clients know this by the words "prompt is too long" (Anthropic) or by its type (OpenAI)."""

    type = "context_length_exceeded"


async def restated(response: ProviderResponse, dialect: Dialect) -> ProviderResponse:
    """The same refusal in the provider's own shape. Reads the engine's answer to its end."""
    said = b"".join([chunk async for chunk in response.body])
    await response.close()
    body = codec_for(dialect).error_body(_error(said), response.status)
    return ProviderResponse(response.status, [("content-type", "application/json")], once(body))


def _error(said: bytes) -> ReefError:
    told = mapping((load_object(said) or {}).get("error"))
    if told.get("type") == "exceed_context_size_error":
        return PromptTooLong(
            f"prompt is too long: {told.get('n_prompt_tokens')} tokens > {told.get('n_ctx')} maximum",
            hint=TOO_LONG_HINT,
        )
    message = string(told.get("message")) or ""
    if found := _VLLM_TOO_LONG.search(message):
        return PromptTooLong(
            f"prompt is too long: {found[2]} tokens > {found[1]} maximum", hint=TOO_LONG_HINT
        )
    return Invalid(message or said[:300].decode(errors="replace") or "the engine refused")
