"""The form between two dialects: what a request asks and an answer says, in nobody's words.

Messages in a row of one role are one message; its parts keep their order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from daemon.wire.values import Json


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """`url` is `https:` or `data:<type>;base64,...`."""

    url: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """`signature` is empty where the provider does not sign."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is a JSON object as text; of a free-form tool (`custom`) `{"input": "..."}`."""

    id: str
    name: str
    arguments: str
    custom: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`call` is the id of the call."""

    call: str
    parts: tuple[Text | Image, ...]
    failed: bool = False
    custom: bool = False


Part = Text | Image | Thinking | ToolCall | ToolResult
Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """`schema` is the JSON schema of its arguments; a free-form tool's is `FREE_FORM`. Of a tool that stands
    in a namespace, `name` is the flat one and `own` what it is called there."""

    name: str
    description: str = ""
    schema: Json = field(default_factory=dict)
    strict: bool | None = None
    custom: bool = False
    namespace: str = ""
    own: str = ""


FREE_FORM: Json = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""How a tool that takes plain text is offered where tools take objects only."""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`name` only where `mode` is `tool`."""

    mode: Literal["auto", "none", "required", "tool"]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """What shape the answer's text must have: a JSON schema, or (None) any JSON object."""

    schema: Json | None
    name: str = "answer"
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: tuple[str, ...] = ()
    effort: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """`dropped` are the fields (paths, `[]` for any index) that found no place in this form."""

    model: str | None
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice | None = None
    parallel: bool | None = None
    sampling: Sampling = Sampling()
    format: Format | None = None
    stream: bool = False
    usage_wanted: bool = True
    """In a stream; chat completions' clients have to ask for it."""
    dropped: tuple[str, ...] = ()
    unheard: bool = False
    """The user's last turn said something, and nothing of it found a place in this form."""

    @property
    def chosen_in_vain(self) -> bool:
        """Whether a tool has to be called that is none of those that are left."""
        choice = self.choice
        if choice is None or choice.mode != "tool" or not self.tools:
            return False
        return all(tool.name != choice.name for tool in self.tools)

    @property
    def demands(self) -> bool:
        """Whether a call has to be made."""
        return self.choice is not None and self.choice.mode in ("required", "tool")


NOTHING = ("", "null")
"""What models write for it."""
NO_ARGUMENTS = "{}"
"""Of a call for which a model wrote none."""


AnswerPart = Text | Thinking | ToolCall
Stop = Literal["end", "length", "tools", "sequence", "refusal"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens; None where the provider did not say. `input` counts those read from a cache (`cached`) and
    written to one (`written`) too."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    written: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`id` is the provider's own. `stop` is None where the answer did not come to its end; `sequence` is the
    stop sequence that was met."""

    id: str | None
    model: str
    parts: tuple[AnswerPart, ...]
    stop: Stop | None
    usage: Usage = Usage()
    created: int | None = None
    sequence: str | None = None


def merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages in a row of one role put together, those that say nothing left out."""
    found: list[Message] = []
    for message in messages:
        if not message.parts:
            continue
        if found and found[-1].role == message.role:
            found[-1] = Message(message.role, found[-1].parts + message.parts)
        else:
            found.append(message)
    return tuple(found)


def split_system(messages: Iterable[Message]) -> tuple[str, tuple[Message, ...]]:
    """The text of the system messages that a conversation begins with, and the rest of it."""
    rest = merged(messages)
    if rest and rest[0].role == "system":
        return joined(rest[0].parts), rest[1:]
    return "", rest


def asked(request: Request) -> Request:
    """The request for a provider that keeps the system text apart from the conversation: where there is
    nothing else, that is what is asked."""
    if request.messages or not request.system:
        return request
    return replace(request, system="", messages=(Message("system", (Text(request.system),)),))


def unthinking(request: Request) -> Request:
    """The request without what models thought before."""
    spoken = (
        replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Thinking)))
        for message in request.messages
    )
    return replace(request, messages=merged(spoken))


def unheard(items: Sequence[Json], messages: Sequence[Message]) -> bool:
    """Whether the user's last turn is lost: some of its `items` have a content, none of its `messages`, which
    were made of them, has a part."""
    lost = False
    for item, message in zip(reversed(items), reversed(messages), strict=True):
        if message.role == "user":
            if message.parts:
                return False
            lost = lost or bool(item.get("content"))
        elif lost and message.parts:
            break
    return lost


def joined(parts: Iterable[Part]) -> str:
    """The texts among a request's parts as one."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text) and part.text)


def spoken(parts: Iterable[AnswerPart]) -> str:
    """The text of an answer: what a stream of it would have added up to."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def thought(parts: Iterable[AnswerPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Thinking))


def run_on(parts: Iterable[AnswerPart]) -> tuple[AnswerPart, ...]:
    """Texts in a row as one, thoughts in a row as one, none of them empty."""
    found: list[AnswerPart] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, ToolCall):
            found.append(part)
        elif isinstance(part, Text) and isinstance(last, Text):
            found[-1] = Text(last.text + part.text)
        elif isinstance(part, Thinking) and isinstance(last, Thinking):
            found[-1] = Thinking(last.text + part.text, part.signature)
        elif part.text:
            found.append(part)
    return tuple(found)


def updated(usage: Usage, later: Usage) -> Usage:
    """What the later report leaves open stays as it was."""
    known = {name: value for name in later.__slots__ if (value := getattr(later, name)) is not None}
    return replace(usage, **known)
