"""One client in one scenario, against a daemon: what it said, what it wrote, and the records of its run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.coding import Agent
from tests.agents.install import Missing
from tests.agents.play import Place, Play, Said, Scenario, Write
from tests.agents.sdks import Sdk
from tests.e2e.running import TOKEN, Daemon, wait_for
from tests.stub_provider import StubProvider

Client = Agent | Sdk


@dataclass(frozen=True)
class Trial:
    """`files` are those in its working folder; `records`, with payloads, in the order in which they
    began; titles, which agents ask for beside their first turn, come first."""

    said: Said
    files: dict[str, str]
    records: list[dict[str, Any]]
    place: Place


def scenario_of(client: Client) -> str:
    """What a client's records are filed under."""
    return client.name.replace(" ", "-")


def fetched(client: Client) -> None:
    """Skip a test whose client cannot be had here, and say why."""
    try:
        client.fetch()
    except Missing as why:
        pytest.skip(str(why))


def tried(
    client: Client,
    scenario: Scenario,
    daemon: Daemon,
    stub: StubProvider,
    folder: Path,
    *,
    model: str = "M",
    write: Write | None = None,
) -> Trial:
    """Run it. Every request that reached the provider has one record, and all are of this run."""
    run = f"{scenario}-{model}"
    name = scenario_of(client)
    place = Place(folder, f"{daemon.url}/s/{name}/r/{run}", TOKEN, str(uuid4()), model)
    work = folder / "work"

    def writing(path: str, text: str, call: str) -> Any:
        return (write or client.write)(str(work / path), text, call)

    stub.asked.clear()
    stub.answer = Play(scenario, writing, agent=isinstance(client, Agent), titles=client.titles)
    before = len(_all(daemon))
    said = client.run(place)
    files = {path.name: path.read_text() for path in work.iterdir()}

    def stored() -> list[dict[str, Any]] | None:
        rows = _all(daemon)[before:]
        return rows if len(rows) >= len(stub.asked) else None

    rows = wait_for(stored, "the records")
    rows.sort(key=lambda row: (row["kind"] != "title", row["created_at"]))
    assert len(rows) == len(stub.asked), said.text
    assert {(row["scenario"], row["run"]) for row in rows} == {(name, run)}
    whole = [daemon.get(f"/reef/records/{row['agent_record_id']}") for row in rows]
    return Trial(said, files, whole, replace(place, folder=work))


def _all(daemon: Daemon) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = daemon.get("/reef/records", limit=1000)["records"]
    return rows
