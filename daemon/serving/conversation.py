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


class Said:
    """What the messages of a request say, digested in one pass.

    Attributes:
        history: keys under which the earlier turns of this conversation may be filed, the best first: up to
            the first assistant message and up to the last. Empty for a request that opens a conversation.
    """

    __slots__ = ("_digest", "history")

    def __init__(self, messages: Sequence[Message]) -> None:
        digest = self._digest = blake2b(digest_size=16)
        first = last = None
        for message in messages:
            _add(digest, message)
            if message.get("role") == "assistant":
                last = digest.copy()
                first = first or last
        found = [_key(each) for each in (first, last) if each is not None]
        self.history = tuple(dict.fromkeys(found))

    def answered(self, answer: Message) -> str:
        """The key that the next request, which carries this answer, will look for."""
        digest = self._digest.copy()
        _add(digest, answer)
        return _key(digest)


def _add(digest: "blake2b", message: Message) -> None:
    """System texts are left out (agents put the date there), and so are results of tools."""
    role = message.get("role")
    if role in {"user", "assistant"}:
        calls: list[Any] = message.get("tool_calls") or []
        ids = [str(call.get("id")) for call in calls if isinstance(call, dict)]
        said = "\0".join((role, str(message.get("content") or "").strip(), *ids))
        digest.update(said.encode(errors="replace") + b"\1")


def _key(digest: "blake2b") -> str:
    return f"h:{digest.hexdigest()}"
