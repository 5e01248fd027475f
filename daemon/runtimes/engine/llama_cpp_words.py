"""What the HTTP server of llama-cpp-python reads and writes: chat completions as OpenAI has them, errors as
llama.cpp has them."""

import re
from typing import Any

import llama_cpp
import orjson
from starlette.responses import Response

_PASSED_ON = (
    *("messages", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "max_tokens", "logprobs"),
    *("top_logprobs", "presence_penalty", "frequency_penalty", "repeat_penalty", "logit_bias"),
)
_TEMPERATURE = 0.8  # llama.cpp's own default
_TOO_LONG = re.compile(r"Requested tokens \((\d+)\) exceed context window of (\d+)")
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


class TextOnly(ValueError):
    """A part of a message that no template can be given."""


def options_of(asked: dict[str, Any]) -> dict[str, Any]:
    """The request as the package takes it. Raises `ValueError` and the like for what is malformed."""
    options = {name: asked[name] for name in _PASSED_ON if asked.get(name) is not None}
    options.setdefault("temperature", _TEMPERATURE)
    options["messages"] = plain(asked["messages"])
    if (most := asked.get("max_completion_tokens")) is not None:
        options["max_tokens"] = most
    wanted = asked.get("response_format") or {}
    if wanted.get("type") in ("json_schema", "json_object"):
        schema = (wanted.get("json_schema") or {}).get("schema") or wanted.get("schema") or _ANY_OBJECT
        options["grammar"] = _grammar(schema)
    return options


def _grammar(schema: dict[str, Any]) -> Any:
    try:
        return llama_cpp.LlamaGrammar.from_json_schema(dump(schema).decode(), verbose=False)
    except Exception as error:
        raise ValueError(f"no grammar can be made of the schema: {error}") from error


def plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With texts where a message has parts: templates take strings."""
    return [message | {"content": _text(message.get("content"))} for message in messages]


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    if other := next((part["type"] for part in content if part["type"] not in ("text", "input_text")), None):
        kind = str(other).removeprefix("input_").removesuffix("_url")
        raise TextOnly(f"{kind} input is not supported: this engine reads text only")
    return "\n\n".join(part["text"] for part in content)


def refused(error: Exception) -> Response:
    """In llama.cpp's own shape, which the daemon restates for its clients."""
    if found := _TOO_LONG.search(str(error)):
        told = {"type": "exceed_context_size_error", "n_prompt_tokens": int(found[1]), "n_ctx": int(found[2])}
        return json_answer({"error": {"code": 400, "message": "the prompt is too long", **told}}, 400)
    if isinstance(error, ValueError | KeyError | TypeError | AttributeError):
        why = f"the request lacks {error}" if isinstance(error, KeyError) else str(error)
        return json_answer({"error": {"code": 400, "type": "invalid_request_error", "message": why}}, 400)
    return json_answer(
        {"error": {"code": 500, "type": "server_error", "message": str(error) or repr(error)}}, 500
    )


def uncounted(why: str) -> Response:
    """Says that nobody can count this here: the daemon estimates it then."""
    return json_answer({"error": {"code": 501, "type": "not_supported_error", "message": why}}, 501)


def json_answer(value: Any, status: int = 200) -> Response:
    return Response(dump(value), status, media_type="application/json")


def dump(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"
