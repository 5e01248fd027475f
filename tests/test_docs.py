"""The documents are checked against the code, so that they cannot rot quietly."""

import re
from pathlib import Path

import pytest

from daemon.settings.model import Settings
from daemon.settings.where import keys_of
from reef.errors import BY_TYPE
from reef_cli.registry import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
CONFIGURATION = (ROOT / "docs/reference/configuration.md").read_text("utf-8")
PROTOCOL = (ROOT / "docs/reference/protocol.md").read_text("utf-8")
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_names_every_command(command: str) -> None:
    assert f"| `reef {command}` |" in README, f"add `reef {command}` to the command table"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_names_a_command_that_is_not_there(document: Path) -> None:
    named = set(re.findall(r"(?:`|^|&& )reef ([a-z]+)", document.read_text("utf-8"), re.MULTILINE))
    assert named <= {*COMMANDS, "demo"}


@pytest.mark.parametrize("section", [name for name in Settings.model_fields if name != "source"])
def test_every_setting_is_documented(section: str) -> None:
    inner = {
        "upstream": ("upstream", 0),
        "price": ("price", 0),
        "budget": ("budget", 0),
        "scenario": ("scenario", 0),
        "recipe": ("recipe", "x"),
    }
    path = inner.get(section, (section,))
    keys = keys_of(Settings, path) - {"gate"}  # a section of its own
    assert keys
    assert {
        key for key in keys if f"`{key}`" not in CONFIGURATION and f"{key} =" not in CONFIGURATION
    } == set()


def test_every_error_type_is_documented() -> None:
    assert {kind for kind in BY_TYPE if f"`{kind}`" not in PROTOCOL} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text("utf-8")):
        assert (document.parent / target).exists(), target


def test_the_changelog_has_an_open_part() -> None:
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
