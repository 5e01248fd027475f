"""Which runtime answers which request."""

import asyncio
from collections.abc import Sequence

from daemon.settings.model import UpstreamSection
from daemon.wire.bridge.crossing import bridged_to
from reef.errors import Unsupported
from reef.runtime import Dialect, Runtime, RuntimeState


class Router:
    """The daemon's runtimes, the most wanted first. `sections` configure those of them that are upstreams."""

    def __init__(self, runtimes: Sequence[Runtime], sections: Sequence[UpstreamSection] = ()) -> None:
        self.runtimes = tuple(runtimes)
        self._sections = {section.name: section for section in sections}

    def pick(self, dialect: Dialect, model: str | None = None) -> Runtime:
        """The runtime for a request: of those that speak the dialect the one that is configured for `model`,
        else the first. Where none speaks it, the same of those to which there is a bridge.

        Raises:
            Unsupported: no bridge leads anywhere.
        """
        able = [runtime for runtime in self.runtimes if runtime.speaks(dialect)]
        if not able:
            able = [runtime for runtime in self.runtimes if bridged_to(dialect, runtime.speaks)]
        if not able:
            there = ", ".join(f"`{runtime.name}` ({runtime.kind})" for runtime in self.runtimes) or "none"
            raise Unsupported(
                f"no upstream speaks the dialect `{dialect}`; there is: {there}",
                hint=f'add an [[upstream]] with api = ["{dialect}"], or use another API of the client',
            )
        return next((runtime for runtime in able if model and runtime.model == model), able[0])

    def own(self, model: str | None = None) -> Runtime:
        """The runtime that Reef itself asks: the one configured for `model`, else the first with a model,
        else (when `model` is given) the first. Never one that takes its clients' own keys: Reef has none.

        Raises:
            Unsupported: none names a model.
        """
        keyed = [runtime for runtime in self.runtimes if not self._passthrough(runtime)]
        named = [runtime for runtime in keyed if runtime.model]
        for runtime in named:
            if runtime.model == model:
                return runtime
        able = named or (keyed if model else ())
        if able:
            return able[0]
        raise Unsupported(
            "no upstream names a model for Reef's own calls",
            hint='set model = "..." in an [[upstream]], or start with --model NAME',
        )

    def _passthrough(self, runtime: Runtime) -> bool:
        section = self._sections.get(runtime.name)
        return section is not None and section.auth == "passthrough"

    async def models(self) -> list[tuple[Runtime, str]]:
        """Every model with the runtime that offers it; of equal names the first."""
        lists = await asyncio.gather(*(runtime.models() for runtime in self.runtimes))
        found: dict[str, Runtime] = {}
        for runtime, names in zip(self.runtimes, lists, strict=True):
            for name in names:
                found.setdefault(name, runtime)
        return [(runtime, name) for name, runtime in found.items()]

    def states(self) -> list[RuntimeState]:
        return [runtime.state() for runtime in self.runtimes]

    async def start(self) -> None:
        await asyncio.gather(*(runtime.start() for runtime in self.runtimes))

    async def close(self) -> None:
        await asyncio.gather(*(runtime.close() for runtime in self.runtimes))
