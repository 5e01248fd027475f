"""What several files start from: a provider that each test finds as new, a terminal in an empty folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal, terminal
from tests.stub_provider import StubProvider


@pytest.fixture(scope="module")
def provider() -> Iterator[StubProvider]:
    with StubProvider() as found:
        yield found


@pytest.fixture
def stub(provider: StubProvider) -> StubProvider:
    provider.answer = lambda asked: f"echo: {asked.user}"
    provider.asked.clear()
    return provider


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Terminal]:
    with terminal(tmp_path) as found:
        yield found
