"""A store that is open for one test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.at(tmp_path / "reef.db")
    yield opened
    opened.close()
