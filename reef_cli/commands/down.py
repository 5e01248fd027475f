"""`reef down`: stop the daemon."""

from reef.home import find_home
from reef_cli import lifecycle
from reef_cli.options import JsonFlag
from reef_cli.output import emit
from reef_cli.session import command

app = command()


@app.command()
def down(as_json: JsonFlag = False) -> None:
    """Stop the daemon. Answers in flight have three seconds to finish; then they end with an error of their
    dialect."""
    home = find_home()
    pid = lifecycle.stop(home)
    data = {"stopped": pid is not None, "pid": pid, "home": str(home)}
    told = f"reef stopped (process {pid})" if pid is not None else f"no Reef daemon runs in {home}"
    emit(data, lambda _: told, as_json=as_json)
