"""`reef records`: the traffic."""

from reef.client import Client
from reef_cli.options import JsonFlag, Limit, Scenario
from reef_cli.output import emit
from reef_cli.render import reports as render
from reef_cli.session import command

app = command()


@app.command()
def records(scenario: Scenario = None, limit: Limit = 20, as_json: JsonFlag = False) -> None:
    """The latest exchanges, newest first, over all scenarios unless one is named."""
    with Client() as client:
        data = client.records(scenario, limit=limit, request_type="inference", order="desc", payload=False)
    emit(data, render.records, as_json=as_json)
