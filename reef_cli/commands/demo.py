"""`reef demo`: the whole loop on the embedded model."""

import time
from pathlib import Path
from typing import Annotated

import typer

from reef_cli.exits import Exit
from reef_cli.output import out, say
from reef_cli.session import command

app = command()

Keep = Annotated[bool, typer.Option("--keep", help="Leave the home and its daemon, to look around.")]


@app.command()
def demo(keep: Keep = False) -> None:
    """Serve, observe, grow and commit in minutes, with real answers of a small model.

    Writes demo.json into this folder. Ends with exit code 5 when the gate said no.
    """
    from reef_cli.demo.play import play, result_file
    from reef_cli.demo.stage import stage

    began = time.monotonic()
    file = result_file(Path.cwd())
    with stage(keep=keep) as setting:
        outcome = play(setting, began)
        outcome.write(file)
        say(f"\n{file.name} written after {outcome.seconds:.0f} s")
        if keep:
            out(f"\nThe daemon still runs. To look around:\n  export REEF_HOME={setting.home}")
            out("  reef status\n  reef log\n  reef show\n  reef step 2\n  reef down")
        else:
            out("\nTo try next: `reef demo --keep` leaves all this for a look around;")
            out("`reef init` writes a configuration of your own, `reef up` serves it.")
    if not outcome.published:
        raise typer.Exit(Exit.REFUSED)
