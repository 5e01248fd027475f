"""What a monitoring system reads off a daemon that has worked."""

from pathlib import Path

import httpx

from tests.daemon.http.test_metrics import read
from tests.e2e.running import running
from tests.stub_provider import Fault, StubProvider

CONFIG = """
[[upstream]]
name = "main"
base_url = "{url}"
model = "m"
price = {{input = 1, output = 1}}
"""


def test_metrics(tmp_path: Path) -> None:
    with StubProvider() as stub:
        (tmp_path / "reef.toml").write_text(CONFIG.format(url=stub.url))
        with running(tmp_path) as daemon:
            _, receipt = daemon.ask("one", scenario="shop")
            daemon.post("/reef/report", {"score": 1, "references": [receipt]})
            stub.answer = lambda asked: Fault(400)
            with daemon.client(x_reef_scenario="shop") as client:
                client.post("/v1/chat/completions", json={"messages": []})
                text = client.get("/metrics").text
            assert httpx.get(f"{daemon.url}/metrics").status_code == 401
    found = {(name, *labels.values()): value for name, labels, value in read(text)}
    assert found["reef_records_total", "shop", "turn", "complete"] == 1
    assert found["reef_records_total", "shop", "turn", "failed"] == 1
    assert found["reef_tokens_total", "shop", "main", "input"] > 0
    assert found["reef_cost_usd_total", "shop", "main"] > 0
    assert found["reef_reports", "shop", "ineligible"] == 1
    assert found["reef_upstream_state", "main", "http", "ready"] == 1
    assert found["reef_upstream_waiting", "main"] == 0
    assert found["reef_store_bytes",] > 0
    assert found["reef_store_writable",] == 1
    assert found["reef_growth_usd_today",] == 0
    for line in text.splitlines():
        assert line.startswith(("#", "reef_"))
