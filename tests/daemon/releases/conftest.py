from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.releases.git import GitReleases


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[GitReleases]:
    opened = GitReleases(tmp_path / "releases.git")
    yield opened
    opened.close()
