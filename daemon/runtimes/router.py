"""Which runtime answers which request, and by which name it knows the model."""

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from daemon.runtimes.prices import PriceTable
from daemon.settings.model import PriceRow, UpstreamSection
from daemon.wire.bridge.crossing import bridged_to
from reef.errors import NotFound, Unsupported
from reef.runtime import Dialect, Price, Runtime, RuntimeState

ROUTES_KEPT = 1024
_WILD = frozenset("*?[")


class Router:
    """The daemon's runtimes, the most wanted first. `sections` configure those of them that are upstreams,
    `prices` say what the models cost."""

    def __init__(
        self,
        runtimes: Sequence[Runtime],
        sections: Sequence[UpstreamSection] = (),
        prices: Sequence[PriceRow] = (),
    ) -> None:
        self.runtimes = tuple(runtimes)
        self._prices = PriceTable(prices, sections)
        self._sections = {section.name: section for section in sections}
        self._routes: dict[tuple[Dialect, str | None, str | None], tuple[Runtime, ...]] = {}
        """What was routed before: neither runtimes nor their configuration change while the daemon runs."""

    def pick(self, dialect: Dialect, model: str | None = None, upstream: str | None = None) -> Runtime:
        """The runtime for a request: `upstream` where one is named, else the first that is configured for
        `model` (its own, an alias or a pattern), else the first that takes any model. Those that speak the
        dialect go before those to which there is a bridge.

        Raises:
            Unsupported: no runtime speaks the dialect, and no bridge leads anywhere.
            NotFound: none takes the model.
        """
        able = self._able(dialect, upstream)
        if not able:
            there = ", ".join(f"`{runtime.name}` ({runtime.kind})" for runtime in self.runtimes) or "none"
            wanted = f"upstream `{upstream}` does not speak" if upstream else "no upstream speaks"
            raise Unsupported(
                f"{wanted} the dialect `{dialect}`; there is: {there}",
                hint=f'add an [[upstream]] with api = ["{dialect}"], or use another API of the client',
            )
        if upstream is not None:
            return able[0]
        if found := self._configured(able, model) or self._open(able, model):
            return found
        raise NotFound(
            f"no upstream takes the model `{model}`" if model else "the request names no model",
            hint=f"there is: {', '.join(self.configured(able))}",
        )

    def _able(self, dialect: Dialect, upstream: str | None) -> list[Runtime]:
        """Those that can answer in a dialect, by themselves first; of them `upstream`, where one is named."""
        able = [runtime for runtime in self.runtimes if runtime.speaks(dialect)]
        able += [
            runtime
            for runtime in self.runtimes
            if runtime not in able and bridged_to(dialect, runtime.speaks) is not None
        ]
        return [runtime for runtime in able if upstream in (None, runtime.name)]

    def speaker(self, dialect: Dialect, upstream: str | None = None) -> Runtime:
        """The first runtime that speaks a dialect by itself, for a request that can name no model; `upstream`
        where one is named. Raises as `pick` does where there is none."""
        for runtime in self.runtimes:
            if runtime.speaks(dialect) and upstream in (None, runtime.name):
                return runtime
        return self.pick(dialect, None, upstream)

    def route(
        self, dialect: Dialect, model: str | None = None, upstream: str | None = None
    ) -> tuple[Runtime, ...]:
        """What `pick` says, then the upstreams that stand in for it when it fails. Raises as `pick` does."""
        asked = (dialect, model, upstream)
        if (known := self._routes.get(asked)) is None:
            known = self._find_route(dialect, model, upstream)
            if len(self._routes) >= ROUTES_KEPT:  # clients choose the names of models
                self._routes.clear()
            self._routes[asked] = known
        return known

    def _find_route(self, dialect: Dialect, model: str | None, upstream: str | None) -> tuple[Runtime, ...]:
        first = self.pick(dialect, model, upstream)
        section = self._sections.get(first.name)
        if section is None or not section.fallback:
            return (first,)
        named = {runtime.name: runtime for runtime in self.runtimes}
        standing_in = (named[name] for name in section.fallback if name in named)
        return (
            first,
            *(
                runtime
                for runtime in standing_in
                if runtime.speaks(dialect) or bridged_to(dialect, runtime.speaks) is not None
            ),
        )

    def name_at(self, runtime: Runtime, model: str | None) -> str | None:
        """The name by which a runtime is asked for `model`; where none is given, for its own."""
        section = self._sections.get(runtime.name)
        if model is None:
            return runtime.model
        if section is None or not section.alias:
            return model
        if (name := section.alias.get(model)) is not None:
            return name
        return next((name for key, name in section.alias.items() if fnmatchcase(model, key)), model)

    def price(self, upstream: str | None, asked: str | None, answered: str | None = None) -> Price | None:
        """What a model costs at the runtime of this name: the one that was asked for, which its answer may
        have given another name. None where that is not known."""
        runtime = next((runtime for runtime in self.runtimes if runtime.name == upstream), None)
        if runtime is None:
            return None
        return self._prices.find(runtime.name, answered, self.name_at(runtime, asked))

    def own(self, model: str | None = None, upstream: str | None = None) -> tuple[Runtime, str | None]:
        """The runtime that Reef itself asks, and for which model: `upstream` where one is named, else the one
        configured for `model`, else the first with a model, else (when `model` is given) the first. Never one
        that takes its clients' own keys: Reef has none.

        Raises:
            Unsupported: none names a model, or may be asked.
        """
        keyed = [runtime for runtime in self.runtimes if not self._passthrough(runtime)]
        if upstream is not None:
            keyed = [runtime for runtime in keyed if runtime.name == upstream]
        found = self._configured(keyed, model)
        if found is not None:
            return found, self.name_at(found, model)
        able = [runtime for runtime in keyed if runtime.model] or (keyed if model else [])
        if not able:
            raise Unsupported(
                "no upstream names a model for Reef's own calls",
                hint='set model = "..." in an [[upstream]], or start with --model NAME',
            )
        others = [runtime for runtime in self.runtimes if runtime is not able[0]]
        strange = bool(self._patterns(able[0])) or self._configured(others, model) is not None
        return able[0], able[0].model if strange and able[0].model else model or able[0].model

    def _configured(self, able: Sequence[Runtime], model: str | None) -> Runtime | None:
        """The first that has `model` as its own, under an alias or by a pattern."""
        if model is None:
            return None
        for runtime in able:
            patterns = (*self._patterns(runtime), *self._aliases(runtime))
            if runtime.model == model or any(fnmatchcase(model, pattern) for pattern in patterns):
                return runtime
        return None

    def _open(self, able: Sequence[Runtime], model: str | None) -> Runtime | None:
        """The first that takes any model, or has one of its own where none is asked for."""
        return next(
            (
                runtime
                for runtime in able
                if not self._patterns(runtime) or (model is None and runtime.model is not None)
            ),
            None,
        )

    def _patterns(self, runtime: Runtime) -> tuple[str, ...]:
        section = self._sections.get(runtime.name)
        return section.models if section is not None else ()

    def _aliases(self, runtime: Runtime) -> tuple[str, ...]:
        section = self._sections.get(runtime.name)
        return tuple(section.alias) if section is not None else ()

    def _passthrough(self, runtime: Runtime) -> bool:
        section = self._sections.get(runtime.name)
        return section is not None and section.auth == "passthrough"

    def configured(self, runtimes: Sequence[Runtime] | None = None) -> list[str]:
        """The models that are configured, by name or by pattern; of these runtimes, else of all."""
        found: dict[str, None] = {}
        for runtime in self.runtimes if runtimes is None else runtimes:
            own = (runtime.model,) if runtime.model else ()
            found |= dict.fromkeys((*own, *self._patterns(runtime), *self._aliases(runtime)))
        return list(found)

    async def models(
        self,
        dialects: Sequence[Dialect],
        upstream: str | None = None,
        *,
        wanted: str | None = None,
    ) -> list[tuple[Runtime, str]]:
        """Every model that a request in one of the dialects can ask for, and who is asked then; `upstream` is
        the one that a scenario has of its own. An upstream that lists its models has those and what it is
        configured for, another one any. Of what nobody lists only `wanted` is told.
        """
        lists = await asyncio.gather(*(runtime.models() for runtime in self.runtimes))
        offers = {runtime: set(names) for runtime, names in zip(self.runtimes, lists, strict=True)}
        told = [*chain(*lists), *(name for name in self.configured() if not _WILD & set(name))]
        ables = [self._able(dialect, upstream) for dialect in dialects]
        found: list[tuple[Runtime, str]] = []
        for name in dict.fromkeys(told if wanted is None else [*told, wanted]):
            takers = (self._taker(name, able, offers, named=upstream is not None) for able in ables)
            if (taker := next(filter(None, takers), None)) is not None:
                found.append((taker, name))
        return found

    def _taker(
        self, model: str, able: Sequence[Runtime], offers: Mapping[Runtime, set[str]], *, named: bool
    ) -> Runtime | None:
        """Who of those that are able is asked for a model, and has it as far as can be told."""
        if (found := self._configured(able, model)) is not None:
            return found
        first = next(iter(able), None) if named else self._open(able, model)
        return first if first is not None and (not offers[first] or model in offers[first]) else None

    def states(self) -> list[RuntimeState]:
        return [runtime.state() for runtime in self.runtimes]

    async def start(self) -> None:
        await asyncio.gather(*(runtime.start() for runtime in self.runtimes))

    async def close(self) -> None:
        await asyncio.gather(*(runtime.close() for runtime in self.runtimes))
