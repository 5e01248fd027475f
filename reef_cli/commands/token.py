"""`reef token`: print the daemon's token."""

from reef.errors import NotFound
from reef.home import find_home, read_token
from reef_cli.options import JsonFlag
from reef_cli.output import emit
from reef_cli.session import command

app = command()


@app.command()
def token(as_json: JsonFlag = False) -> None:
    """Print the token that clients show: the one kept in the home, else REEF_TOKEN."""
    home = find_home()
    found = read_token(home, {}) or read_token(home)
    if found is None:
        raise NotFound(f"there is no token in {home}", hint="`reef up` makes one")
    emit({"token": found, "file": str(home / "token")}, lambda data: data["token"], as_json=as_json)
