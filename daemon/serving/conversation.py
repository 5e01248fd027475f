"""Which conversation a request belongs to, read off what was said in it.

A client with sessions names it. For others, a conversation is what was said up to an assistant's message: the
record of an opening turn is filed under its messages and its answer, and that is what the next request begins
with. So an app that sends the same examples with each request opens a conversation each time, as it should.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from reef.feedback import Message


def session_key(session: str) -> str:
    return f"s:{session}"


def history_keys(messages: Sequence[Message]) -> tuple[str, ...]:
    """Keys under which the earlier turns of this conversation may be filed, the best first: up to the first
    assistant message and up to the last. Empty for a request that opens a conversation."""
    answers = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    if not answers:
        return ()
    return tuple(dict.fromkeys(_key(messages[: index + 1]) for index in (answers[0], answers[-1])))


def answer_key(messages: Sequence[Message], answer: Message) -> str:
    """The key that the next request, which carries this answer, will look for."""
    return _key([*messages, answer])


def _key(messages: Sequence[Message]) -> str:
    """System texts are left out (agents put the date there), and so are results of tools."""
    digest = blake2b(digest_size=16)
    for message in messages:
        role = message.get("role")
        if role in {"user", "assistant"}:
            calls: list[Any] = message.get("tool_calls") or []
            ids = [str(call.get("id")) for call in calls if isinstance(call, dict)]
            said = "\0".join((role, str(message.get("content") or "").strip(), *ids))
            digest.update(said.encode(errors="replace") + b"\1")
    return f"h:{digest.hexdigest()}"
