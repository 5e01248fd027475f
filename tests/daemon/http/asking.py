"""Requests in each dialect."""

from reef.runtime import Dialect

PATHS: dict[Dialect, str] = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}


def body_of(dialect: Dialect, text: str = "hi", **more: object) -> dict[str, object]:
    own = {"input": text} if dialect == "responses" else {"messages": [{"role": "user", "content": text}]}
    return {"model": "m", "max_tokens": 9, **own, **more}
