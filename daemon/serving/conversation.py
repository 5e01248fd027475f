"""Which conversation a request belongs to, read off what was said in it.

A client with sessions names it. For others, a conversation is what was said up to an assistant's message: the
record of an opening turn is filed under its messages and its answer, and that is what the next request begins
with. So an app that sends the same examples with each request opens a conversation each time, as it should.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from daemon.wire.values import mappings
from reef.feedback import Message

KEPT = 32
KEPT_CHARS = 2 * 2**20
KEPT_FROM_CHARS = 16_384
"""Less is digested sooner than it is found and compared."""
_BYTES = 16
_SPEAKERS = frozenset({"user", "assistant"})


def session_key(session: str) -> str:
    return f"s:{session}"


class Examples:
    """What requests of late said before their last question, and its digest: an app that sends the same
    examples with each request has them digested once."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[list[Message], blake2b, int]] = OrderedDict()
        self._chars = 0

    def find(self, spoken: list[Message]) -> "blake2b | None":
        """The digest of these very messages, if they are remembered."""
        known = self._known.get(_text(spoken[0]))
        if known is None or known[0] != spoken:
            return None
        self._known.move_to_end(_text(spoken[0]))
        return known[1].copy()

    def keep(self, spoken: list[Message], digest: "blake2b") -> None:
        """Remember messages with their digest, in place of others that begin with the same one. Those with
        calls in them are an agent's, and come with a session."""
        if any(message.get("tool_calls") for message in spoken):
            return
        chars = sum(len(_text(message)) for message in spoken)
        if not KEPT_FROM_CHARS <= chars <= KEPT_CHARS:
            return
        name = _text(spoken[0])
        if (before := self._known.pop(name, None)) is not None:
            self._chars -= before[2]
        self._known[name] = (spoken, digest.copy(), chars)
        self._chars += chars
        while len(self._known) > KEPT or self._chars > KEPT_CHARS:
            self._chars -= self._known.popitem(last=False)[1][2]


class Said:
    """What the messages of a request say, digested as far as somebody asks."""

    __slots__ = ("_count", "_digest", "_examples", "_spoken")

    def __init__(self, messages: Sequence[Message], examples: Examples | None = None) -> None:
        # System texts are left out (agents put the date there), and so are results of tools.
        self._spoken = [message for message in messages if message.get("role") in _SPEAKERS]
        self._examples = examples
        self._digest, self._count = blake2b(digest_size=_BYTES), 0

    def history(self) -> Iterator[str]:
        """Keys under which the earlier turns of this conversation may be filed, the best first: up to the
        first assistant message and up to the last. None for a request that opens a conversation."""
        answers = [at for at, message in enumerate(self._spoken, 1) if message["role"] == "assistant"]
        if not answers:
            return
        yield _key(self._up_to(answers[0]))
        if answers[-1] == answers[0]:
            return
        if self._examples is None:
            yield _key(self._up_to(answers[-1]))
            return
        before = self._spoken[: answers[-1]]
        if (known := self._examples.find(before)) is not None:
            self._digest, self._count = known, len(before)
        else:
            self._examples.keep(before, self._up_to(len(before)))
        yield _key(self._digest)

    def answered(self, answer: Message) -> str:
        """The key that the next request, which carries this answer, will look for."""
        digest = self._up_to(len(self._spoken)).copy()
        _add(digest, answer)
        return _key(digest)

    def _up_to(self, count: int) -> "blake2b":
        """The digest of the first `count` messages."""
        if count < self._count:
            self._digest, self._count = blake2b(digest_size=_BYTES), 0
        for message in self._spoken[self._count : count]:
            _add(self._digest, message)
        self._count = count
        return self._digest


def _add(digest: "blake2b", message: Message) -> None:
    ids = [str(call.get("id")) for call in mappings(message.get("tool_calls"))]
    said = "\0".join((message["role"], _text(message).strip(), *ids))
    digest.update(said.encode(errors="replace") + b"\1")


def _text(message: Message) -> str:
    return str(message.get("content") or "")


def _key(digest: "blake2b") -> str:
    return f"h:{digest.hexdigest()}"
