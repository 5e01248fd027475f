"""A command group that imports a command only when it is run or asked for its own help."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from reef_cli.exits import UsageError
from reef_cli.registry import COMMANDS


class LazyGroup(TyperGroup):
    """`reef`: its commands are the lines of `reef_cli.registry`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"did you mean `reef {near[0]}`?" if near else "`reef --help` lists the commands"
            raise UsageError(f"`{cmd_name}` is not a command of reef", hint=hint)
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        app: typer.Typer = getattr(import_module(f"reef_cli.commands.{module}"), attribute)
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])
