"""`reef env`: shell lines that point clients at the daemon."""

import shlex
from typing import Annotated, Literal

import typer

from reef.home import Address, find_daemon, find_home, read_daemon, read_token
from reef.ids import check_scenario
from reef_cli.options import JsonFlag, legal_scenario
from reef_cli.output import emit, say
from reef_cli.session import command

app = command()

PLACEHOLDER = "reef"
"""What SDKs are given for a key where the daemon asks for none; they refuse to start without one."""


def variables(url: str, token: str | None, scenario: str | None) -> dict[str, str]:
    """The variables that OpenAI and Anthropic clients, and Reef's own, read."""
    base = f"{url}/s/{check_scenario(scenario)}" if scenario else url
    key = token or PLACEHOLDER
    found = {
        "OPENAI_BASE_URL": f"{base}/v1",
        "OPENAI_API_KEY": key,
        "ANTHROPIC_BASE_URL": base,
        "ANTHROPIC_API_KEY": key,
        "REEF_URL": url,
    }
    return found | ({"REEF_TOKEN": token} if token else {})


def lines(values: dict[str, str], shell: str) -> str:
    """One line a variable, quoted so that the shell takes each value as it is."""
    if shell == "fish":
        return "\n".join(f"set -gx {name} {_fish(value)}" for name, value in values.items())
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in values.items())


def _fish(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _address() -> Address:
    """The daemon of the home, whatever an earlier `reef env` left in the shell; else what REEF_URL names."""
    home = find_home()
    if (daemon := read_daemon(home)) is not None:
        return Address(daemon.url, read_token(home, {}))
    address = find_daemon()
    say(f"no daemon runs in {home}: this is the address that REEF_URL names")
    return address


@app.command()
def env(
    scenario: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--scenario",
            metavar="SCENARIO",
            callback=legal_scenario,
            help="Put requests in this scenario.",
        ),
    ] = None,
    shell: Annotated[Literal["sh", "fish"], typer.Option("--shell", help="For which shell.")] = "sh",
    as_json: JsonFlag = False,
) -> None:
    """Shell lines for `eval "$(reef env)"` (fish: `reef env --shell fish | source`)."""
    address = _address()
    values = variables(address.url, address.token, scenario)
    emit(values, lambda found: lines(found, shell), as_json=as_json)
