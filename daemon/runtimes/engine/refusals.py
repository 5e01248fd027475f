"""What an engine refuses, said in the dialect that was asked: llama.cpp has one shape for all of them."""

from collections.abc import AsyncIterator

from daemon.wire.codec import codec_for
from daemon.wire.values import load_object, mapping, string
from reef.errors import Invalid, ReefError
from reef.runtime import Dialect, ProviderResponse


class PromptTooLong(Invalid):
    """Clients know this by the words "prompt is too long" (Anthropic) or by its type (OpenAI)."""

    type = "context_length_exceeded"


async def restated(response: ProviderResponse, dialect: Dialect) -> ProviderResponse:
    """The same refusal in the provider's own shape. Reads the engine's answer to its end."""
    said = b"".join([chunk async for chunk in response.body])
    await response.close()
    body = codec_for(dialect).error_body(_error(said), response.status)
    return ProviderResponse(response.status, [("content-type", "application/json")], _once(body))


def _error(said: bytes) -> ReefError:
    told = mapping((load_object(said) or {}).get("error"))
    if told.get("type") == "exceed_context_size_error":
        return PromptTooLong(
            f"prompt is too long: {told.get('n_prompt_tokens')} tokens > {told.get('n_ctx')} maximum",
            hint="shorten the conversation, or raise `context` under [engine]",
        )
    return Invalid(string(told.get("message")) or said[:300].decode(errors="replace") or "the engine refused")


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
