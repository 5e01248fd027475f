"""Tool calls by grammar: the model is asked for one JSON object, which becomes the call.

An engine's own reading of tool calls depends on the model's chat template, and does not hold a model to a
call that the request demands. A JSON schema does, with every template.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daemon.wire.bridge.neutral import Format, Request, Tool
from daemon.wire.values import Json, content_text, dump, load_object, mapping, mappings, string
from reef.errors import Invalid

_TEXT: Json = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that an answer may be, or has to be. With `optional` it may be text instead, which has the
    shape `format` where the request wants one."""

    tools: tuple[Tool, ...]
    optional: bool
    format: Format | None = None

    @classmethod
    def wanted(cls, request: Request, *, all_calls: bool) -> "Calls | None":
        """What the request demands, and with `all_calls` what it allows as well; None where that is nothing.

        Raises:
            Invalid: it demands a tool that it does not bring.
        """
        mode = request.choice.mode if request.choice else "auto"
        if not request.tools or mode == "none" or (mode == "auto" and not all_calls):
            return None
        tools = request.tools
        if request.choice and mode == "tool":
            tools = tuple(tool for tool in tools if tool.name == request.choice.name)
            if not tools:
                raise Invalid(f"tool_choice names `{request.choice.name}`, which is none of the tools")
        return cls(tools, mode == "auto", request.format)

    def put_into(self, body: Json, held: Callable[[Json, Tool | None], Json]) -> Json:
        """A chat completions request that asks for the object. It is answered in one piece. `held` makes of a
        tool's schema, or of that of the answer (None), what the engine holds."""
        kept = {key: value for key, value in body.items() if key not in _REPLACED}
        messages = _plain(mappings(body.get("messages")))
        if messages and messages[0].get("role") == "system":
            said = f"{content_text(messages[0].get('content'))}\n\n{self._told()}".strip()
            messages[0] = messages[0] | {"content": said}
        else:
            messages.insert(0, {"role": "system", "content": self._told()})
        wanted = {"type": "json_schema", "json_schema": {"name": "call", "schema": self._schema(held)}}
        return kept | {"messages": messages, "response_format": wanted}

    def taken_from(self, response: Json) -> Json:
        """The answer with the call in it. One that was cut off stays the text that it is."""
        choice = next(iter(mappings(response.get("choices"))), {})
        said = string(mapping(choice.get("message")).get("content")) or ""
        found = load_object(said.encode(errors="replace"), exact=True)
        if found is None:
            return response
        if self.optional and "answer" in found:
            answer = found["answer"]
            text = answer if isinstance(answer, str) else dump(answer).decode()
            message: Json = {"role": "assistant", "content": text}
            finish = "stop"
        else:
            alone = self._alone
            name = alone.name if alone else string(found.get("name")) or ""
            arguments = found if alone else mapping(found.get("arguments"))
            call = {"name": name, "arguments": dump(arguments).decode()}
            message = {"role": "assistant", "content": None}
            # The crossing, which every such answer takes, gives it an id.
            message["tool_calls"] = [{"id": "", "type": "function", "function": call}]
            finish = "tool_calls"
        return response | {"choices": [choice | {"message": message, "finish_reason": finish}]}

    @property
    def _alone(self) -> Tool | None:
        """The tool that must be called: its arguments are the whole answer."""
        return self.tools[0] if len(self.tools) == 1 and not self.optional else None

    def _schema(self, held: Callable[[Json, Tool | None], Json]) -> Json:
        if self._alone:
            return held(_arguments(self._alone), self._alone)
        shapes: Json = {}
        ways: list[Json] = []
        if self.optional:
            wanted = (self.format.schema or {"type": "object"}) if self.format else None
            shapes["answer"] = _TEXT if wanted is None else held(wanted, None)
            ways.append(_object(answer={"$ref": "#/$defs/answer"}))
        for number, tool in enumerate(self.tools):
            shapes[f"tool{number}"] = held(_arguments(tool), tool)
            ways.append(_object(name={"const": tool.name}, arguments={"$ref": f"#/$defs/tool{number}"}))
        return {"anyOf": ways, "$defs": {name: _moved(shape, name) for name, shape in shapes.items()}}

    def _told(self) -> str:
        if tool := self._alone:
            about = f"Call the tool `{tool.name}`" + (f": {tool.description}" if tool.description else "")
            schema = dump(tool.schema).decode()
            return f"{about}\nAnswer with its arguments, one JSON object of this schema:\n{schema}"
        listed = [
            dump({"name": tool.name, "description": tool.description, "arguments": tool.schema}).decode()
            for tool in self.tools
        ]
        ways = 'To call one of the tools, answer with {"name": ..., "arguments": {...}}.'
        if self.optional:
            ways += ' To call none, answer with {"answer": ...}.'
        return "\n".join((f"You have tools. Answer with one JSON object. {ways} The tools:", *listed))


_REPLACED = frozenset(
    ("tools", "tool_choice", "parallel_tool_calls", "response_format", "stream", "stream_options", "messages")
)


def _arguments(tool: Tool) -> Json:
    """One that says nothing of its arguments has none."""
    return {"type": "object"} | (tool.schema or {"properties": {}, "additionalProperties": False})


def _object(**properties: Json) -> Json:
    names = list(properties)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _moved(value: Any, name: str) -> Any:
    """A schema that stands under `#/$defs/NAME` now: what it refers to within itself moved with it."""
    if isinstance(value, list):
        return [_moved(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _moved(member, name) for key, member in value.items()}
    reference = value.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        found["$ref"] = f"#/$defs/{name}{reference[1:]}"
    return found


def _plain(messages: list[Json]) -> list[Json]:
    """Earlier calls and their results as texts: a template without tools leaves them out, or fails."""
    return [_plain_message(message) for message in messages]


def _plain_message(message: Json) -> Json:
    if message.get("role") == "tool":
        return {"role": "user", "content": f"The tool's result:\n{content_text(message.get('content'))}"}
    calls = [mapping(call.get("function")) for call in mappings(message.get("tool_calls"))]
    if not calls:
        return message
    said = [content_text(message.get("content"))]
    for call in calls:
        arguments = load_object((string(call.get("arguments")) or "{}").encode(errors="replace"))
        said.append(dump({"name": call.get("name"), "arguments": arguments}).decode())
    return {"role": "assistant", "content": "\n".join(line for line in said if line)}
