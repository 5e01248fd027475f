"""The options that `reef up` and `reef serve` share, and the words they hand to `python -m daemon serve`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from reef_cli.exits import UsageError

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Lets `--section.key VALUE` through to the daemon."""

Config = Annotated[Path | None, typer.Option("-c", metavar="FILE", help="The configuration.")]
Port = Annotated[int | None, typer.Option("--port", metavar="N", help="Where to listen; 0 picks a free one.")]
Upstream = Annotated[str | None, typer.Option("--upstream", metavar="URL", help="Where the models are.")]
Api = Annotated[
    list[str] | None,
    typer.Option("--api", metavar="DIALECT", help="What it speaks: chat, messages, responses (repeatable)."),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="What Reef itself asks for.")]
KeyEnv = Annotated[
    str | None, typer.Option("--upstream-key-env", metavar="NAME", help="The variable that holds its key.")
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="NAME", help="What serves a local model: xllamacpp, llama-cpp-python, vllm."
    ),
]
NoAuth = Annotated[bool, typer.Option("--no-auth", help="Ask for no token.")]


def daemon_words(
    config: Path | None,
    port: int | None,
    upstream: str | None,
    api: Sequence[str] | None,
    model: str | None,
    key_env: str | None,
    no_auth: bool,
    engine: str | None,
    settings: Sequence[str],
) -> list[str]:
    """The flags that were given, then `settings` (`--section.key VALUE ...`) as they are.

    Raises:
        UsageError: the value of a flag looks like another flag.
    """
    given = (
        ("-c", config),
        ("--port", port),
        ("--upstream", upstream),
        *(("--api", dialect) for dialect in api or ()),
        ("--model", model),
        ("--upstream-key-env", key_env),
        ("--engine", engine),
    )
    for flag, value in given:
        if str(value).startswith("-"):
            raise UsageError(f"`{flag}` needs a value, not `{value}`", hint=f"write {flag} VALUE")
    words = [str(part) for flag, value in given if value is not None for part in (flag, value)]
    return [*words, *(["--no-auth"] if no_auth else []), *settings]
