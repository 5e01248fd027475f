"""The list of models holds what a request is routed, under the names that clients use."""

from collections.abc import Iterator

import httpx
import pytest

from daemon.settings.model import UpstreamSection
from reef.runtime import DIALECTS, Dialect
from tests.daemon.http.asking import PATHS, body_of
from tests.daemon.serving.house import House, house
from tests.stub_provider import StubProvider

MANY = [f"o{number}" for number in range(12)]


@pytest.fixture(scope="module")
def home() -> Iterator[House]:
    with StubProvider() as one, StubProvider() as other:
        one.models, other.models = ["plain", "gpt-5", "azure", "gpt-5-mini"], MANY
        first = UpstreamSection(
            name="first",
            base_url=one.url,
            models=("gpt-*",),
            alias={"fast": "gpt-5-mini", "claude-*": "gpt-5"},
        )
        second = UpstreamSection(name="second", base_url=other.url, models=("o*",))
        own = {"own": "first"}
        with house([first, second], upstream_of=own.get) as built:
            yield built


def listed(home: House, path: str = "/v1/models", **headers: str) -> list[str]:
    return [row["id"] for row in httpx.get(home.url + path, headers=headers).json()["data"]]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_that_is_listed_is_served_and_no_other(home: House, dialect: Dialect) -> None:
    headers = {"anthropic-version": "1"} if dialect == "messages" else {}
    found = listed(home, **headers)
    assert found == ["gpt-5", "gpt-5-mini", *MANY, "fast"]
    for name in (*found, "claude-x", "plain", "azure"):
        there = name not in ("plain", "azure")
        row = httpx.get(f"{home.url}/v1/models/{name}", headers=headers)
        answer = httpx.post(home.url + PATHS[dialect], json={**body_of(dialect), "model": name})
        assert (row.status_code, answer.status_code) == ((200, 200) if there else (404, 404)), name


def test_a_hint_names_what_there_is(home: House) -> None:
    said = httpx.get(f"{home.url}/v1/models/azure").json()["error"]["message"]
    assert "there is: gpt-5, gpt-5-mini, o0, o1, o2, o3, o4, o5, o6, o7, ..." in said
    said = httpx.post(home.url + PATHS["chat"], json={**body_of("chat"), "model": "azure"}).text
    assert "there is: gpt-*, fast, claude-*, o*" in said


def test_a_scenario_with_an_upstream_of_its_own_has_its_models(home: House) -> None:
    everything = ["plain", "gpt-5", "azure", "gpt-5-mini", "fast"]
    assert listed(home, "/s/own/v1/models") == everything
    assert listed(home, **{"x-reef-scenario": "own"}) == everything
    answer = httpx.post(f"{home.url}/s/own{PATHS['chat']}", json={**body_of("chat"), "model": "azure"})
    assert answer.status_code == 200
    assert httpx.get(f"{home.url}/s/own/v1/models/o1").status_code == 404


def test_patterns_say_what_there_is_where_nobody_lists_any() -> None:
    section = UpstreamSection(name="silent", base_url="http://127.0.0.1:9", models=("gpt-*",))
    with house([section]) as built:
        assert listed(built) == []
        assert httpx.get(f"{built.url}/v1/models/gpt-5").status_code == 200
        assert "there is: gpt-*" in httpx.get(f"{built.url}/v1/models/other").text
