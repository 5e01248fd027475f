"""`reef explain`: the story of one receipt."""

from typing import Annotated

import typer

from reef.client import Client
from reef_cli.exits import UsageError
from reef_cli.options import JsonFlag
from reef_cli.output import emit
from reef_cli.render import reports as render
from reef_cli.session import command

app = command()


@app.command()
def explain(receipt: Annotated[str, typer.Argument(metavar="RECEIPT")], as_json: JsonFlag = False) -> None:
    """When it was, which release served it, which reports cite it, and what became of them."""
    if not receipt.strip():
        raise UsageError("the receipt is empty", hint="`reef records` lists receipts")
    with Client() as client:
        data = client.explain(receipt)
    emit(data, render.explain, as_json=as_json)
