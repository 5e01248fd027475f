"""A folder to work in, with what the example names."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path
