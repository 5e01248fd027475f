"""What an engine refuses, said in the dialect that was asked: llama.cpp and vLLM have one shape for all."""

import re

from daemon.runtimes.replayed import once
from daemon.wire.codec import codec_for
from daemon.wire.values import load_object, mapping, string
from reef.errors import Invalid, NotFound, ReefError
from reef.runtime import ProviderRequest, ProviderResponse

_VLLM_TOO_LONG = re.compile(
    r"maximum context length is (\d+) tokens?.*?(at least )?\b(\d+) (?:input )?tokens", re.DOTALL
)
"""vLLM says it in a sentence whose first number is the window's size."""
_VLLM_PARTS = re.compile(
    r"maximum context length is (\d+) tokens?.*\((\d+) in the (?:messages|prompt)", re.DOTALL
)
"""Older ones add up the prompt and the answer that is asked for."""
_VLLM_CHARACTERS = re.compile(
    r"maximum context length is (\d+) tokens?.*contains (\d+) characters", re.DOTALL
)
"""Where it did not even count the tokens."""
_VLLM_FULL = re.compile(
    r"prompt length \d+ exceeds the max_model_len|plus the number of requested output tokens .*longer than"
)
"""A prompt that leaves no room for an answer; or, if the request does not say so itself, the next."""
_VLLM_NO_ROOM = re.compile(r"^max_(?:completion_|output_)?tokens must be at least 1, got 0\b")
_VLLM_ANSWER = "cannot be greater than max_model_len"
"""More is asked for as an answer than the whole window: agents do, whatever the model."""
_ROOM = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TEXT_ONLY = re.compile(r"is not a multimodal model\b")
_UNREAD = re.compile(r"^(\w+) input is not supported")
_PLURALS = {"image": "images", "video": "videos", "file": "files"}
_MALFORMED = ("Failed to parse messages:", "Failed to parse tools:")
"""llama.cpp answers 500 to these and to `_UNREAD`, though only another request, or another model, helps."""


class PromptTooLong(Invalid):
    """Clients know this by the words "prompt is too long" (Anthropic) or by its type (OpenAI)."""

    type = "context_length_exceeded"


class CannotServe(Invalid):
    """However often it is asked, this engine does not answer this request."""


async def restated(
    response: ProviderResponse, request: ProviderRequest, model: str, *, wider: str
) -> ProviderResponse:
    """The same refusal in the shape of the provider that `request` (in a dialect) is for, and with status 400
    where to ask again is no use. Reads the engine's answer to its end. `wider` helps where a prompt is too
    long."""
    assert request.dialect is not None
    said = b"".join([chunk async for chunk in response.body])
    await response.close()
    error = _error(said, request.body, model, wider)
    if response.status == 404 and not isinstance(error, CannotServe):
        error = NotFound(error.message, hint=error.hint)
    status = 400 if isinstance(error, CannotServe) else response.status
    body = codec_for(request.dialect).error_body(error, status)
    return ProviderResponse(status, [("content-type", "application/json")], once(body))


def _error(said: bytes, asked: bytes, model: str, wider: str) -> ReefError:
    told = mapping((load_object(said) or {}).get("error"))
    if told.get("type") == "exceed_context_size_error":
        return PromptTooLong(
            f"prompt is too long: {told.get('n_prompt_tokens')} tokens > {told.get('n_ctx')} maximum",
            hint=f"shorten the conversation, {wider}",
        )
    message = string(told.get("message")) or ""
    if too_long := _vllm_too_long(message, asked):
        return PromptTooLong(too_long, hint=f"shorten the conversation, {wider}")
    if found := _UNREAD.match(message):
        return CannotServe(
            f"the model `{model}` reads no {_PLURALS.get(found[1], found[1])}",
            hint="serve a model that does (reef models add), or name an upstream that has one",
        )
    if _TEXT_ONLY.search(message):
        return CannotServe(
            f"the model `{model}` reads text only", hint="name an upstream that has a model which reads more"
        )
    if _VLLM_ANSWER in message:
        return Invalid(message, hint=f"ask for fewer, {wider}")
    if message.startswith(_MALFORMED):
        return CannotServe(message, hint="see the provider's documents")
    return Invalid(message or said[:300].decode(errors="replace") or "the engine refused")


def _vllm_too_long(message: str, asked: bytes) -> str | None:
    """How much too long the prompt is; None where vLLM complains of something else, be it of the answer that
    is asked for on top of a prompt which fits."""
    if found := _VLLM_CHARACTERS.search(message):
        window = int(found[1])
        return f"prompt is too long: at least {window + 1} tokens > {window} maximum ({found[2]} characters)"
    if parts := _VLLM_PARTS.search(message):
        window, asked_for = int(parts[1]), int(parts[2])
        return f"prompt is too long: {asked_for} tokens > {window} maximum" if asked_for > window else None
    if (found := _VLLM_TOO_LONG.search(message)) and int(found[3]) > int(found[1]):
        return f"prompt is too long: {found[2] or ''}{found[3]} tokens > {found[1]} maximum"
    full = _VLLM_FULL.search(message) is not None
    if not full and _VLLM_NO_ROOM.match(message):
        request = load_object(asked) or {}
        full = all(request.get(name) != 0 for name in _ROOM)
    return "prompt is too long: it leaves no room for an answer in the model's window" if full else None
