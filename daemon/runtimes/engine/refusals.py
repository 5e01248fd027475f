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
_UNREAD = re.compile(r"^(\w+) input is not supported")
_PLURALS = {"image": "images", "video": "videos", "file": "files"}
_MALFORMED = ("Failed to parse messages:", "Failed to parse tools:")
"""llama.cpp answers 500 to these and to `_UNREAD`, though only another request, or another model, helps."""


class PromptTooLong(Invalid):
    """Clients know this by the words "prompt is too long" (Anthropic) or by its type (OpenAI)."""

    type = "context_length_exceeded"


class CannotServe(Invalid):
    """However often it is asked, this engine does not answer this request."""


async def restated(response: ProviderResponse, dialect: Dialect, model: str) -> ProviderResponse:
    """The same refusal in the provider's own shape, and with status 400 where to ask again is no use. Reads
    the engine's answer to its end."""
    said = b"".join([chunk async for chunk in response.body])
    await response.close()
    error = _error(said, model)
    status = 400 if isinstance(error, CannotServe) else response.status
    body = codec_for(dialect).error_body(error, status)
    return ProviderResponse(status, [("content-type", "application/json")], once(body))


def _error(said: bytes, model: str) -> ReefError:
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
    if found := _UNREAD.match(message):
        return CannotServe(
            f"the model `{model}` reads no {_PLURALS.get(found[1], found[1])}",
            hint="serve a model that does (reef models add), or name an upstream that has one",
        )
    if message.startswith(_MALFORMED):
        return CannotServe(message, hint="see the provider's documents")
    return Invalid(message or said[:300].decode(errors="replace") or "the engine refused")
