"""Every client in every scenario: what it says, what it writes, and the records that it leaves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.coding import AGENTS, RUN_S, Agent
from tests.agents.install import INSTALL_S, Missing
from tests.agents.play import DONE, FILES, SCENARIOS, Place, Play
from tests.agents.sdks import SDKS, Python, Sdk
from tests.agents.table import cells, word
from tests.e2e.running import TOKEN, Daemon, running, wait_for
from tests.stub_provider import StubProvider

Client = Agent | Sdk
CLIENTS: list[Client] = [*SDKS, *AGENTS]
CELLS = cells()


def params() -> list[Any]:
    return [
        pytest.param(
            client,
            scenario,
            id=f"{client.name.replace(' ', '-')}-{scenario}",
            marks=[] if isinstance(client, Python) else pytest.mark.agents,
        )
        for client in CLIENTS
        for scenario in SCENARIOS
        if (client.name, scenario) in CELLS
    ]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProvider]:
    with StubProvider() as found:
        yield found


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, stub: StubProvider) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("clients"), "--upstream", stub.url, "--model", "M") as found:
        yield found


def test_the_table_is_of_these_clients_and_scenarios() -> None:
    assert {client for client, _ in CELLS} == {client.name for client in CLIENTS}
    assert {scenario for _, scenario in CELLS} == set(SCENARIOS)


@pytest.mark.timeout(2 * INSTALL_S + RUN_S + 30)
@pytest.mark.parametrize(("client", "scenario"), params())
def test_a_client(client: Client, scenario: Any, daemon: Daemon, stub: StubProvider, tmp_path: Path) -> None:
    try:
        client.fetch()
    except Missing as why:
        pytest.skip(str(why))
    cell = CELLS[client.name, scenario]
    name, run = client.name.replace(" ", "-"), scenario
    place = Place(tmp_path, f"{daemon.url}/s/{name}/r/{run}", TOKEN, str(uuid4()))
    work = tmp_path / "work"
    stub.asked.clear()
    stub.answer = Play(
        scenario,
        lambda path, text, call: client.write(str(work / path), text, call),
        agent=isinstance(client, Agent),
    )

    said = client.run(place)

    assert said.ok is not cell.fails, said.text
    assert cell.fails or DONE in said.text, said.text
    if not cell.fails:
        assert {path.name: path.read_text() for path in work.iterdir()} == FILES.get(scenario, {}), said.text

    def stored() -> list[dict[str, Any]] | None:
        """As many records as the provider was asked, and nothing outside the run."""
        rows = daemon.get("/reef/records", limit=1000)["records"]
        assert {row["scenario"] for row in rows} <= {other.name.replace(" ", "-") for other in CLIENTS}
        mine = [row for row in rows if (row["scenario"], row["run"]) == (name, run)]
        return mine if len(mine) >= len(stub.asked) else None

    rows = sorted(wait_for(stored, "the records"), key=lambda row: row["created_at"])
    assert [word(row) for row in rows] == cell.words, said.text
    assert len(rows) == len(stub.asked)
    sessions = {row["session"] for row in rows}
    assert len(sessions) == 1, sessions
    assert (sessions != {None}) is client.session
    if client.name == "claude-code":
        assert sessions == {place.session}
    receipts = {row["agent_record_id"] for row in rows}
    assert all(row["superseded_by"] in receipts | {None} for row in rows)
    assert {row["dialect"] for row in rows} == {client.dialect}
