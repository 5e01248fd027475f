"""Which engines there are, and what each of them can do by itself.

To add one: a line in `KINDS`, and in `child.SERVERS` the module that serves it. `tests/daemon/runtimes/
test_engine.py` holds it to the contract.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from reef.errors import Unsupported
from reef.runtime import DIALECTS, Dialect, RuntimeKind


@dataclass(frozen=True, slots=True)
class EngineKind:
    """`dialects` are those that its own server speaks, `streams` those that it streams as they are meant,
    `shapes` those in which it holds an answer to a format; Reef translates the others. `calls` are the tool
    calls that Reef has it make by a grammar: `forced` (those that the request demands), or `all`. With every
    one of the words in `reads_calls` it reads by itself those that are only allowed. `schemas` says who makes
    a grammar of a JSON schema: `guidance`, a library that Reef asks what it holds, or `gbnf`, the engine's
    own converter, which reads less; None: what the engine is sent is its own affair. `package` is the Python
    package that it comes in; None: a program on the PATH. While it loads, clients are told to come back after
    `loading_retry_s`. `wider` is what helps where a prompt is too long for it."""

    name: str
    runtime: RuntimeKind
    dialects: tuple[Dialect, ...]
    streams: tuple[Dialect, ...]
    shapes: tuple[Dialect, ...]
    calls: Literal["forced", "all"]
    schemas: Literal["guidance", "gbnf"] | None
    package: str | None
    remedy: str
    wider: str
    reads_calls: frozenset[str] = frozenset()
    loading_retry_s: int = 1

    def started_with(self, args: Sequence[str]) -> "EngineKind":
        """What it does when these words of the user's are added to its command line."""
        given = {word.partition("=")[0].replace("_", "-") for word in args}
        return replace(self, calls="forced") if self.reads_calls and self.reads_calls <= given else self

    def version(self) -> str:
        """What decides an answer besides the model.

        Raises:
            Unsupported: it is not installed.
        """
        if self.package is None:
            if (program := shutil.which(self.name)) is not None:
                return f"{self.name} at {program}"
        else:
            packages = (self.package, "llguidance") if self.schemas == "guidance" else (self.package,)
            try:
                return ", ".join(f"{package} {version(package)}" for package in packages)
            except PackageNotFoundError:
                pass
        raise Unsupported(f"the engine {self.name} is not installed", hint=self.remedy)


_ELSE = "or name an upstream: reef up --upstream URL"
_WIDER = "raise `context` under [engine], or serve a model with a longer window"

KINDS = {
    kind.name: kind
    for kind in (
        EngineKind(
            name="xllamacpp",
            runtime="engine",
            dialects=("chat", "messages"),  # responses that are cut off would be called complete
            streams=("chat",),  # the others lack their first event where the answer begins within a character
            shapes=("chat",),
            calls="forced",
            schemas="guidance",
            package="xllamacpp",
            remedy=f"pip install 'reefd[local]', {_ELSE}",
            wider=f"{_WIDER}: reef models add",
        ),
        EngineKind(
            name="llama-cpp-python",
            runtime="engine",
            dialects=("chat",),
            streams=("chat",),
            shapes=("chat",),
            calls="all",
            schemas="gbnf",
            package="llama-cpp-python",
            remedy=f"pip install 'reefd[llama-cpp]' (it is compiled, which takes minutes), {_ELSE}",
            wider=f"{_WIDER}: reef models add",
        ),
        EngineKind(
            name="vllm",
            runtime="vllm",
            dialects=DIALECTS,
            streams=DIALECTS,
            shapes=DIALECTS,
            # Without these words it refuses tools, in responses it ignores them; with them the arguments of a
            # call that is demanded may be any JSON.
            calls="all",
            schemas=None,
            package=None,
            remedy=f"pip install vllm where there is a GPU, start without --engine vllm, {_ELSE}",
            wider=_WIDER,
            reads_calls=frozenset(("--enable-auto-tool-choice", "--tool-call-parser")),
            loading_retry_s=10,  # an SDK comes back twice, and it loads for a minute or more
        ),
    )
}
