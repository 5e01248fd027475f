"""SDKs as an app uses them: a few lines that ask, write files as told, and return the last text."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai

from reef.runtime import Dialect
from tests.agents.coding import run
from tests.agents.install import installed, node
from tests.agents.play import TASK, Place, Said
from tests.stub_provider import ToolCall

DRIVERS = Path(__file__).parent / "drivers"
ABOUT = "Write a text to a file."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Sdk:
    """One SDK in one dialect, streamed or not. `name` is its row of the table."""

    name: str
    package: str
    dialect: Dialect
    stream: bool

    session = titles = False

    def fetch(self) -> None:
        """Install it, where it is not one of this Python's.

        Raises:
            Missing: it cannot be had here.
        """

    def write(self, path: str, text: str, call: str) -> ToolCall:
        return ToolCall("write_file", {"path": path, "content": text}, call)

    def run(self, place: Place) -> Said:
        raise NotImplementedError


@dataclass(frozen=True)
class JavaScript(Sdk):
    """Run by a driver of its own, `drivers/PACKAGE.mjs`. `store`: what the AI SDK is told to say."""

    store: bool = True

    def fetch(self) -> None:
        node()
        installed(self.package)

    def run(self, place: Place) -> Said:
        work = place.folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        for driver in DRIVERS.glob("*.mjs"):
            (place.folder / driver.name).write_text(driver.read_text())
        (place.folder / "node_modules").symlink_to(installed(self.package) / "node_modules")
        told = {"v1": place.v1, "token": place.token, "model": place.model, "task": TASK}
        told |= {"dialect": self.dialect, "stream": self.stream, "store": self.store}
        program = str(place.folder / f"{self.package}.mjs")
        return run([str(node() / "node"), program, json.dumps(told)], work, place.folder, {})


@dataclass(frozen=True)
class Python(Sdk):
    """Run in this very process."""

    def run(self, place: Place) -> Said:
        (place.folder / "work").mkdir(parents=True, exist_ok=True)
        ask = {"chat": _chat, "responses": _responses, "messages": _messages}[self.dialect]
        try:
            return Said(True, ask(place, self.stream))
        except (openai.OpenAIError, anthropic.AnthropicError, RuntimeError) as error:
            # RuntimeError: how openai's helper says that a response did not complete
            return Said(False, f"{type(error).__name__}: {error}")


SDKS: list[Sdk] = [
    kind(f"{package} {dialect} {'streamed' if stream else 'buffered'}", package, dialect, stream)
    for kind, package, dialects in (
        (Python, "openai-python", ("chat", "responses")),
        (Python, "anthropic-python", ("messages",)),
        (JavaScript, "openai-js", ("chat", "responses")),
        (JavaScript, "ai-sdk", ("chat", "messages", "responses")),
    )
    for dialect in dialects
    for stream in (True, False)
]


def _write(arguments: dict[str, str]) -> str:
    Path(arguments["path"]).write_text(arguments["content"])
    return "written"


def _chat(place: Place, stream: bool) -> str:
    function = {"name": "write_file", "description": ABOUT, "parameters": PARAMETERS, "strict": True}
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with openai.OpenAI(base_url=place.v1, api_key=place.token) as client:
        while True:
            body: dict[str, Any] = {"model": place.model, "messages": messages}
            body["tools"] = [{"type": "function", "function": function}]
            if stream:
                with client.chat.completions.stream(**body) as events:
                    said: Any = events.get_final_completion().choices[0].message
            else:
                said = client.chat.completions.create(**body).choices[0].message
            if not said.tool_calls:
                return str(said.content)
            messages.append(said.model_dump(exclude_none=True, exclude={"parsed"}))
            for call in said.tool_calls:
                result = _write(json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def _responses(place: Place, stream: bool) -> str:
    tool = {"type": "function", "name": "write_file", "description": ABOUT, "strict": True}
    items: list[Any] = [{"role": "user", "content": TASK}]
    with openai.OpenAI(base_url=place.v1, api_key=place.token) as client:
        while True:
            body: dict[str, Any] = {"model": place.model, "input": items}
            body["tools"] = [tool | {"parameters": PARAMETERS}]
            if stream:
                with client.responses.stream(**body) as events:
                    whole: Any = events.get_final_response()
            else:
                whole = client.responses.create(**body)
            calls = [item for item in whole.output if item.type == "function_call"]
            if not calls:
                return str(whole.output_text)
            for item in whole.output:
                items.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
            for call in calls:
                result = _write(json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def _messages(place: Place, stream: bool) -> str:
    tool = {"name": "write_file", "description": ABOUT, "input_schema": PARAMETERS}
    messages: list[Any] = [{"role": "user", "content": TASK}]
    with anthropic.Anthropic(base_url=place.root, api_key=place.token) as client:
        while True:
            body: dict[str, Any] = {"model": place.model, "max_tokens": 99, "messages": messages}
            body["tools"] = [tool]
            if stream:
                with client.messages.stream(**body) as events:
                    said: Any = events.get_final_message()
            else:
                said = client.messages.create(**body)
            calls = [block for block in said.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in said.content if block.type == "text")
            messages.append({"role": "assistant", "content": said.content})
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": _write(call.input)}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
