"""Makes the runtimes that were chosen."""

import os
from dataclasses import replace
from pathlib import Path

from daemon.runtimes.choose import Choice
from daemon.runtimes.engine.process import EngineConfig
from daemon.runtimes.engine.runtime import Engine
from daemon.runtimes.environment import key_names
from daemon.runtimes.models import DEFAULT_MODEL, find_model, path_of
from daemon.runtimes.upstream import HttpUpstream
from daemon.runtimes.vllm import VllmUpstream
from daemon.settings.model import EngineSection, UpstreamSection
from reef.errors import NotFound
from reef.runtime import Runtime

_CONFIGS = ("config.json", "params.json")
"""What a folder that vLLM serves has one of; the second is Mistral's."""


def runtimes_of(choice: Choice, engine: EngineSection, logs: Path) -> list[Runtime]:
    """The runtimes that were chosen, the most wanted first.

    Raises:
        ConfigError: an upstream's address or key variable is wrong.
        NotFound: the model is not there.
        Unsupported: the engine is not installed.
    """
    runtimes = [_upstream(section) for section in choice.upstreams]
    if choice.model_path is None and not choice.embedded:
        return runtimes
    config = _vllm(choice, engine) if engine.kind == "vllm" else _gguf(choice, engine)
    config = replace(config, withheld=key_names(choice.upstreams))
    return [*runtimes, Engine(config, logs, idle_unload_s=engine.idle_unload_s)]


def _upstream(section: UpstreamSection) -> Runtime:
    return VllmUpstream(section, os.environ) if section.kind == "vllm" else HttpUpstream(section, os.environ)


def _gguf(choice: Choice, engine: EngineSection) -> EngineConfig:
    if choice.model_path is not None:
        path = find_model(choice.model_path)
    else:
        path = path_of(DEFAULT_MODEL)
        if not path.is_file():
            raise NotFound(
                "no upstream is configured or found, and the embedded model is not here yet",
                hint="name an upstream: --upstream URL; or fetch the model (98 MB): reef models add smollm2",
            )
    return EngineConfig(
        path.stem, path.resolve(), engine.context, engine.parallel, engine.threads, engine.kind, engine.args
    )


def _vllm(choice: Choice, engine: EngineSection) -> EngineConfig:
    """vLLM takes a folder, or the name of a model that it fetches itself."""
    path = choice.model_path
    if path is None:
        raise NotFound(
            "vllm is asked for, and no model to serve with it",
            hint="name one: --reef.model_path FOLDER, or --model ORGANISATION/NAME",
        )
    if path.is_absolute() and not path.exists():
        raise NotFound(f"no model at {path}", hint="give a folder, or: --model ORGANISATION/NAME")
    elsewhere = any(word.replace("_", "-").startswith("--hf-config-path") for word in engine.args)
    if path.is_dir() and not elsewhere and not any((path / name).is_file() for name in _CONFIGS):
        raise NotFound(
            f"no model in {path}: it has no config.json",
            hint="give the folder of a model as Hugging Face keeps it: config.json, tokenizer, safetensors",
        )
    context = engine.context if "context" in engine.model_fields_set else None
    name = path.name if path.exists() else str(path)
    return EngineConfig(name, path, context, engine.parallel, engine.threads, engine.kind, engine.args)
