from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.records.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk.at(tmp_path)
    yield made
    made.store.close()
