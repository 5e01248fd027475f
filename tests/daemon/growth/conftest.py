from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.growth.house import House, house


@pytest.fixture
def home(tmp_path: Path) -> Iterator[House]:
    """A store with the scenarios a and b, each with a queued step 1."""
    with house(tmp_path) as found:
        for name in ("a", "b"):
            found.scenario(name)
            found.step(name)
        yield found
