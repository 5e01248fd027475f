"""Every client in every scenario: what it says, what it writes, and the records that it leaves."""

from pathlib import Path
from typing import Any

import pytest

from tests.agents.coding import AGENTS, RUN_S
from tests.agents.install import INSTALL_S
from tests.agents.play import DONE, FILES, SCENARIOS, Scenario
from tests.agents.sdks import SDKS, Python
from tests.agents.table import cells, word
from tests.agents.trial import Client, fetched, tried
from tests.e2e.running import Daemon
from tests.stub_provider import StubProvider

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


def test_the_table_is_of_these_clients_and_scenarios() -> None:
    assert {client for client, _ in CELLS} == {client.name for client in CLIENTS}
    assert {scenario for _, scenario in CELLS} == set(SCENARIOS)


@pytest.mark.timeout(2 * INSTALL_S + RUN_S + 30)
@pytest.mark.parametrize(("client", "scenario"), params())
def test_a_client(
    client: Client, scenario: Scenario, daemon: Daemon, stub: StubProvider, tmp_path: Path
) -> None:
    fetched(client)
    cell = CELLS[client.name, scenario]
    trial = tried(client, scenario, daemon, stub, tmp_path)
    said, rows = trial.said, trial.records

    assert [word(row) for row in rows] == cell.words, said.text
    assert said.ok is not cell.fails, said.text
    if not cell.fails:
        assert DONE in said.text, said.text
        assert trial.files == FILES.get(scenario, {}), said.text
    assert {row["dialect"] for row in rows} == {client.dialect}
    receipts = {row["agent_record_id"] for row in rows}
    assert {row["superseded_by"] for row in rows} <= receipts | {None}
    sessions = {row["session"] for row in rows if row["kind"] != "compaction"}  # pi's names none
    assert len(sessions) == 1, sessions
    assert (sessions != {None}) is client.session
    if client.name == "claude-code":
        assert sessions == {trial.place.session}
