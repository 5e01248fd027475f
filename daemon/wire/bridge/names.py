"""What the two sides call things: tools that had to be renamed, and ids that a bridge has to make."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from daemon.wire.bridge.neutral import Part, Request, Tool, ToolCall

_LONGEST = 64
_ODD = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True)
class Known:
    """A tool as its client knows it. `custom`: it takes text, not an object."""

    name: str
    namespace: str = ""
    custom: bool = False


def flat_name(namespace: str, name: str) -> str:
    """A name for a tool of a namespace where there are none, as long and of such characters as all allow."""
    between = "" if not namespace or namespace.endswith("__") else "__"
    plain = f"{namespace}{between}{name}"
    flat = _ODD.sub("_", plain)
    if flat == plain and len(flat) <= _LONGEST:
        return flat
    return f"{flat[: _LONGEST - 9]}_{_digest(plain)}"


def fitting_id(identity: str) -> str:
    """The id of a call, of the characters that all allow."""
    fits = _ODD.sub("_", identity)
    return fits if fits == identity else f"{fits}_{_digest(identity)}"


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=4).hexdigest()


def fitted(request: Request) -> Request:
    """The request with names of tools that all providers of OpenAI's dialects take, in calls of tools that
    are gone as well; `Names` knows what they were."""

    def fit(part: Part) -> Part:
        return replace(part, name=flat_name("", part.name)) if isinstance(part, ToolCall) else part

    choice = request.choice
    return replace(
        request,
        tools=tuple(
            replace(tool, name=flat_name("", tool.name), own=tool.own or tool.name) for tool in request.tools
        ),
        choice=choice and replace(choice, name=flat_name("", choice.name)),
        messages=tuple(
            replace(message, parts=tuple(map(fit, message.parts))) for message in request.messages
        ),
    )


class Names:
    """Belongs to one exchange: the same receipt and tools give the same names and ids.

    Attributes:
        stem: what ids made here are made of, the receipt's digits.
        created: when the exchange began, in seconds.
    """

    def __init__(self, receipt: str, tools: Sequence[Tool] = ()) -> None:
        self.stem = receipt.replace("-", "")
        self.created = int(self.stem[:12], 16) // 1000
        self._known = {tool.name: Known(tool.own or tool.name, tool.namespace, tool.custom) for tool in tools}

    def restored(self, name: str) -> Known:
        """The tool behind a name that the upstream used; one it made up stays what it is."""
        return self._known.get(name) or Known(name)

    def call_id(self, upstreams: str, number: int) -> str:
        """The id of the `number`-th call: the upstream's own, where it has one."""
        return upstreams or f"call_{self.stem}_{number}"

    def item_id(self, kind: str, index: int) -> str:
        """The id of the `index`-th item of an answer."""
        return f"{kind}_{self.stem}_{index}"
