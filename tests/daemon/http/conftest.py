"""One stub provider and one house a module; each test finds them as new."""

from collections.abc import Iterator

import httpx
import pytest

from tests.daemon.serving.house import House, house
from tests.stub_provider import StubProvider


@pytest.fixture(scope="module")
def provider() -> Iterator[StubProvider]:
    with StubProvider() as started:
        yield started


@pytest.fixture(scope="module")
def shared(provider: StubProvider) -> Iterator[House]:
    with house(provider.url) as built:
        yield built


@pytest.fixture
def stub(provider: StubProvider) -> StubProvider:
    provider.asked.clear()
    provider.left.clear()
    provider.answer = lambda asked: f"echo: {asked.user}"
    provider.headers, provider.delay_s, provider.event_delay_s = {}, 0.0, 0.0
    return provider


@pytest.fixture
def home(shared: House, stub: StubProvider) -> House:
    shared.records.drafts.clear()
    shared.records.trouble = shared.records.failed = None
    shared.seen.clear()
    return shared


@pytest.fixture
def client(home: House) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=home.url, timeout=10) as opened:
        yield opened
