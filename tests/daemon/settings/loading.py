"""A configuration as an example, and how the tests load one."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from daemon.settings.load import load_settings
from daemon.settings.model import Settings
from reef.errors import NotFound

EXAMPLE = """\
[reef]
port = 8900

[[upstream]]
name = "main"
base_url = "http://127.0.0.1:11434"
model = "qwen3:8b"
api = ["chat"]

[[scenario]]
match = "ready-*"
recipe = "ready"

[recipe.ready]
use = "harness_evolve"
adapter = "chat"
proposers = ["feedback", "demonstrations"]
tasks = "tasks.toml"

[recipe.ready.gate]
policy = "sequential"
alpha = 0.05

[[recipe.ready.seed]]
id = "style"
name = "rules"
config = { text = "Answer briefly." }
"""


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    proposers: tuple[str, ...] = ()
    max_score: float = 0.0


def options_of(use: str) -> type[BaseModel]:
    if use != "harness_evolve":
        raise NotFound(f"no recipe named `{use}`", hint="see `reef recipes`")
    return Options


def load(folder: Path, text: str, name: str = "reef.toml", **more: Any) -> Settings:
    (folder / name).write_text(text)
    more = {"options_of": options_of} | more
    return load_settings(folder / name, **more).settings
