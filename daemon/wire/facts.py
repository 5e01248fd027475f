"""What a request says, in no dialect's words."""

from collections.abc import Callable
from functools import cached_property

from daemon.wire.values import Json, integer, string
from reef.feedback import Message


class RequestFacts:
    """A request that was parsed once. `messages` are made when somebody asks for them.

    Attributes:
        model: the model it names, if it names one.
        stream: whether it asks for a stream.
        max_tokens: the bound on the answer's tokens that it sets, if any.
        payload: the parsed body; not to be changed.
    """

    def __init__(
        self, payload: Json, max_tokens_keys: tuple[str, ...], read: Callable[[Json], list[Message]]
    ):
        self.payload = payload
        self.model = string(payload.get("model"))
        self.stream = payload.get("stream") is True
        found = [integer(payload.get(key)) for key in max_tokens_keys]
        self.max_tokens = next((value for value in found if value is not None), None)
        self._read = read

    @cached_property
    def messages(self) -> list[Message]:
        """Chat messages: roles `system`, `user`, `assistant`, `tool`; content is plain text; tool calls and
        their results in chat completions' form."""
        return self._read(self.payload)
