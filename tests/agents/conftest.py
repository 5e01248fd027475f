"""A provider and daemons in front of it, one of each for a process's tests."""

from collections.abc import Iterator

import pytest

from tests.e2e.running import Daemon, running
from tests.stub_provider import StubProvider


@pytest.fixture(scope="package")
def provider() -> Iterator[StubProvider]:
    with StubProvider() as found:
        yield found


@pytest.fixture
def stub(provider: StubProvider) -> StubProvider:
    """It speaks all dialects, until a test says otherwise."""
    provider.api = ("chat", "messages", "responses")
    return provider


@pytest.fixture(scope="package")
def daemon(tmp_path_factory: pytest.TempPathFactory, provider: StubProvider) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("clients"), "--upstream", provider.url, "--model", "M") as found:
        yield found


@pytest.fixture(scope="package")
def bridging(tmp_path_factory: pytest.TempPathFactory, provider: StubProvider) -> Iterator[Daemon]:
    """A daemon whose upstream speaks chat completions only."""
    folder = tmp_path_factory.mktemp("bridging")
    with running(folder, "--upstream", provider.url, "--model", "M", "--api", "chat") as found:
        yield found
