"""The configuration as one validated model. Reading files, flags and the environment is `load.py`.

Field names are the keys that users write. A field without a default must be given.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from reef.runtime import Dialect
from reef.tree import EntryKind


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReefSection(Section):
    """`[reef]`: the daemon itself."""

    host: str = "127.0.0.1"
    port: int = Field(8900, ge=0, le=65535)
    auth: bool = True
    token: str | None = Field(None, repr=False)
    hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    model_path: Path | None = None
    model: str | None = None
    """What to ask for on an upstream that was found rather than configured."""
    max_body_mb: int = Field(64, gt=0)
    on_record_failure: Literal["refuse", "serve"] = "refuse"
    on_client_gone: Literal["cancel", "drain"] = "cancel"
    """What becomes of the upstream's answer when its client leaves: `drain` reads it to its end."""
    scrub: bool = True
    relay: tuple[Annotated[str, Field(pattern=r"^/")], ...] = ()
    """Shell patterns of further paths after `/v1` that are passed on unrecorded."""


class PriceSection(Section):
    """US dollars per million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached_input: float | None = Field(None, ge=0, allow_inf_nan=False)
    """What is read from the provider's cache; as `input` where it is left out."""
    cache_write: float | None = Field(None, ge=0, allow_inf_nan=False)
    """What is put into it; as `input` where it is left out."""


class PriceRow(PriceSection):
    """`[[price]]`: what a model costs; the first row that fits counts. Both names are shell patterns."""

    model: str
    upstream: str = "*"


class UpstreamSection(Section):
    """`[[upstream]]`: a provider over HTTP."""

    name: str
    base_url: str
    kind: Literal["http", "vllm"] = "http"
    """`vllm`: a `vllm serve` that somebody else started."""
    model: str | None = None
    api_key_env: str | None = None
    api_key_file: Path | None = None
    auth: Literal["key", "passthrough"] = "key"
    """`passthrough`: the client's own credentials go to the provider."""
    api: tuple[Literal["chat", "messages", "responses", "openai", "anthropic"], ...] | None = None
    models: tuple[str, ...] = ()
    """Shell patterns of the models it takes; none: any."""
    alias: dict[str, str] = Field(default_factory=dict)
    """What clients ask for (or a pattern), and its name at this upstream."""
    retries: int = Field(0, ge=0, le=10)
    fallback: tuple[str, ...] = ()
    """Upstreams to ask, in this order, when this one fails before its first byte."""
    concurrency: int | None = Field(None, ge=1)
    price: PriceSection | None = None
    connect_timeout_s: float = Field(10.0, gt=0)
    read_timeout_s: float = Field(600.0, gt=0)

    def dialects(self) -> tuple[Dialect, ...] | None:
        """The dialects it speaks; None means all."""
        if self.api is None:
            return None
        short: dict[str, tuple[Dialect, ...]] = {"openai": ("chat", "responses"), "anthropic": ("messages",)}
        found: list[Dialect] = []
        for word in self.api:
            found.extend(short.get(word) or cast(tuple[Dialect, ...], (word,)))
        return tuple(dict.fromkeys(found))


class EngineSection(Section):
    """`[engine]`: how a local model is served."""

    kind: Literal["xllamacpp", "llama-cpp-python", "vllm"] = "xllamacpp"
    context: int = Field(8192, ge=256)
    parallel: int = Field(4, ge=1)
    threads: int | None = Field(None, ge=1)
    idle_unload_s: float | None = Field(None, gt=0)
    """Seconds without a request after which the model leaves the memory."""
    args: tuple[str, ...] = ()
    """Further words for `vllm serve`."""


class ScenarioSection(Section):
    """`[[scenario]]`: which recipe a scenario gets; the first match wins."""

    match: str
    recipe: str
    upstream: str | None = None


class ScenariosSection(Section):
    """`[scenarios]`: how scenarios come to be."""

    require_header: bool = False
    create: Literal["implicit", "explicit"] = "implicit"


class BudgetSection(Section):
    """`[[budget]]`: what each scenario that fits may use in a day (UTC). All that fit a scenario hold."""

    match: str = "*"
    usd_per_day: float | None = Field(None, gt=0, allow_inf_nan=False)
    tokens_per_day: int | None = Field(None, gt=0)
    hard: bool = False
    """Refuse requests once it is spent; else it is only told."""
    warn_at: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = (0.8,)
    """Shares of it that are told when they are reached."""


class GateSection(Section):
    """`[recipe.NAME.gate]`: what decides on a candidate."""

    policy: str = "sequential"
    alpha: float = Field(0.05, gt=0, lt=1)
    budget_pairs: int = Field(30, ge=1)
    min_gain: float = Field(0.02, ge=0)
    tie: float = Field(0.0, ge=0)
    max_cost_ratio: float = Field(1.5, gt=0)
    temperature: float = Field(0.0, ge=0)
    max_tokens: int = Field(512, ge=1)


class SeedEntry(Section):
    """`[[recipe.NAME.seed]]`: an entry that a new scenario starts with."""

    id: str
    name: EntryKind
    config: dict[str, Any] = Field(default_factory=dict)
    disabled: bool = False


class RecipeSection(BaseModel):
    """`[recipe.NAME]`. Keys that are not listed here are the recipe's own options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    use: str = "harness_evolve"
    adapter: str = "chat"
    inject: bool | None = None
    model: str | None = None
    upstream: str | None = None
    tasks: Path | None = None
    batch_size: int = Field(1, ge=1)
    training_mode: Literal["auto", "manual", "hybrid"] = "hybrid"
    publish: Literal["auto", "review", "canary"] = "auto"
    gate: GateSection = GateSection()
    seed: tuple[SeedEntry, ...] = ()

    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class GrowthSection(Section):
    """`[growth]`: limits over all scenarios."""

    usd_per_day: float = Field(1.0, ge=0)
    parallel_steps: int = Field(2, ge=1)
    parallel_episodes: int = Field(8, ge=1)
    enabled: bool = True


class Settings(Section):
    """All of it."""

    reef: ReefSection = ReefSection()
    upstream: tuple[UpstreamSection, ...] = ()
    price: tuple[PriceRow, ...] = ()
    engine: EngineSection = EngineSection()
    scenario: tuple[ScenarioSection, ...] = ()
    scenarios: ScenariosSection = ScenariosSection()
    budget: tuple[BudgetSection, ...] = ()
    recipe: dict[str, RecipeSection] = Field(default_factory=dict)
    growth: GrowthSection = GrowthSection()
    source: Path | None = None
    """The file these came from; paths in it are relative to its folder."""
