"""Every recipe of the cookbook has a README and an example that is a valid configuration."""

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import recipes
from daemon.evaluation.tasks import load_tasks
from daemon.settings.model import Settings
from reef.recipe import Recipe

COOKBOOK = Path(next(iter(recipes.__path__)))
FOLDERS = [path for path in sorted(COOKBOOK.iterdir()) if (path / "__init__.py").is_file()]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_example_is_valid(folder: Path) -> None:
    assert (folder / "README.md").read_text().startswith(f"# {folder.name}\n")
    settings = Settings.model_validate(tomllib.loads((folder / "reef.toml").read_text()))
    for section in settings.recipe.values():
        (point,) = entry_points(group="reef.recipes", name=section.use)
        found = point.load()
        assert issubclass(found, Recipe)
        assert found.summary
        found(found.Options(**section.options()))
        if section.tasks:
            assert len([task for task in load_tasks(folder / section.tasks) if task.split == "gate"]) >= 5
