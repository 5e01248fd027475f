"""Which engines there are, and what each of them can do by itself.

To add one: a line in `KINDS`, and in `child.SERVERS` the module that serves it. `tests/daemon/runtimes/
test_engine.py` holds it to the contract.
"""

import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

from reef.errors import Unsupported
from reef.runtime import DIALECTS, Dialect, RuntimeKind


@dataclass(frozen=True, slots=True)
class EngineKind:
    """`dialects` are those that its own server speaks, `streams` those that it streams as they are meant;
    Reef translates the others. `calls` are the tool calls that Reef has it make by a grammar: `forced` (those
    that the request demands), `all`, or `none`. `schemas` says who makes a grammar of a JSON schema:
    `guidance`, a library that Reef asks what it holds, or `gbnf`, the engine's own converter, which reads
    less; None: what the engine is sent is its own affair. `package` is the Python package that it comes in;
    None: a program on the PATH."""

    name: str
    runtime: RuntimeKind
    dialects: tuple[Dialect, ...]
    streams: tuple[Dialect, ...]
    calls: Literal["forced", "all", "none"]
    schemas: Literal["guidance", "gbnf"] | None
    package: str | None
    remedy: str

    def version(self) -> str:
        """What decides an answer besides the model.

        Raises:
            Unsupported: it is not installed.
        """
        if self.package is None:
            if (program := shutil.which(self.name)) is not None:
                return f"{self.name} at {program}"
        else:
            try:
                return f"{self.package} {version(self.package)}"
            except PackageNotFoundError:
                pass
        raise Unsupported(f"the engine {self.name} is not installed", hint=self.remedy)


_ELSE = "or name an upstream: reef up --upstream URL"

KINDS = {
    kind.name: kind
    for kind in (
        EngineKind(
            name="xllamacpp",
            runtime="engine",
            dialects=("chat", "messages"),  # responses that are cut off would be called complete
            streams=("chat",),  # the others lack their first event where the answer begins within a character
            calls="forced",
            schemas="guidance",
            package="xllamacpp",
            remedy=f"pip install 'reefd[local]', {_ELSE}",
        ),
        EngineKind(
            name="llama-cpp-python",
            runtime="engine",
            dialects=("chat",),
            streams=("chat",),
            calls="all",
            schemas="gbnf",
            package="llama-cpp-python",
            remedy=f"pip install 'reefd[llama-cpp]' (it is compiled, which takes minutes), {_ELSE}",
        ),
        EngineKind(
            name="vllm",
            runtime="vllm",
            dialects=DIALECTS,
            streams=DIALECTS,
            calls="none",
            schemas=None,
            package=None,
            remedy=f"pip install vllm where there is a GPU, start without --engine vllm, {_ELSE}",
        ),
    )
}
