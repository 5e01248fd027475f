"""`reef`: run one command, and turn what goes wrong into lines for people and an exit code for scripts."""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import reef
from reef._plain import error_text
from reef.errors import ConfigError, DaemonUnreachable, ReefError, Unauthorized
from reef.home import find_home, stale_url
from reef_cli.exits import Exit, UsageError, exit_for
from reef_cli.lazy import LazyGroup
from reef_cli.output import out, say, spell_out

app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ParserError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""What the parser raises; typer does not export it."""


def _print_version(wanted: bool) -> None:
    if wanted:
        out(reef.__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Reef makes your agent better while it works: serve, observe, grow, commit."""
    if context.invoked_subcommand is None:
        out(context.get_help())


def main(words: Sequence[str] | None = None) -> None:
    """The `reef` command. Always ends by SystemExit."""
    command = typer.main.get_command(app)
    spell_out()
    try:
        _check_words(sys.argv[1:] if words is None else words)
        code = command.main(
            args=None if words is None else list(words), prog_name="reef", standalone_mode=False
        )
        sys.exit(code if isinstance(code, int) else Exit.DONE)
    except ReefError as error:
        say(error_text(_with_stale_url(error)))
        sys.exit(exit_for(error))
    except typer.Abort:
        sys.exit(130)
    except ParserError as error:
        say(error_text(_told(error)))
        sys.exit(Exit.USAGE)
    except Exception as error:
        say(f"error: a bug in Reef: {type(error).__name__}: {error}")
        say(f"hint: please report it with {_write_trace()}")
        sys.exit(Exit.BUG)


def _check_words(words: Sequence[str]) -> None:
    """Raises `UsageError` for a word whose bytes are no text in this locale."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            shown = word.encode("utf-8", "backslashreplace").decode()
            raise UsageError(
                f"`{shown}` is not valid text", hint="give it in UTF-8, in a locale that speaks it"
            ) from None


def _told(error: Any) -> UsageError:
    """What the parser of the command line says, as an error of ours."""
    message = error.format_message().rstrip(".")
    words = error.ctx.command_path if getattr(error, "ctx", None) else "reef"
    return UsageError(message[:1].lower() + message[1:], hint=f"`{words} --help` shows how")


def _with_stale_url(error: ReefError) -> ReefError:
    """Say where the error may come from a daemon that is not the one of this home."""
    if isinstance(error, UsageError | ConfigError | DaemonUnreachable):
        return error
    if (stale := stale_url(os.environ.get("REEF_URL", "").rstrip("/"))) is not None:
        if isinstance(error, Unauthorized):
            error.hint = stale
        else:
            error.message += f"\n{stale}"
    return error


def _write_trace() -> str:
    """Keep the traceback beside the daemon's log. Returns where, or the traceback itself."""
    trace = traceback.format_exc()
    file: Path = find_home() / "logs" / "cli.log"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as log:
            log.write(trace + "\n")
    except OSError:
        return trace
    return str(file)
