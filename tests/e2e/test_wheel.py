"""The wheel, in an environment of its own: what it holds and that it runs."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.running import ROOT
from tests.e2e.terminal import Terminal, terminal
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.slow

TOML = """
[[upstream]]
name = "main"
base_url = "{url}"
model = "M"

[[scenario]]
match = "*"
recipe = "main"

[recipe.main]
use = "harness_evolve"
"""
YAML = """
upstream:
  - {{name: main, base_url: "{url}", model: M}}
scenario:
  - {{match: "*", recipe: main}}
recipe:
  main: {{use: harness_evolve}}
"""


def run(*command: str, cwd: Path) -> str:
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "REEF_"))}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel in it; what it depends on is taken from ours, except for Reef."""
    folder = tmp_path_factory.mktemp("wheel")
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT), cwd=folder
    )
    [wheel] = folder.glob("reefd-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    found = folder / "env"
    python = str(found / "bin" / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    run(*pip, str(wheel), cwd=folder)
    [site] = found.glob("lib/python3*/site-packages")
    ours = Path(sysconfig.get_paths()["purelib"])
    for package in ours.iterdir():
        if "reefd" not in package.name and not (site / package.name).exists():
            (site / package.name).symlink_to(package)
    assert run(python, "-c", "import reef; print(reef.__file__)", cwd=folder).startswith(str(found))
    return found


@pytest.fixture
def here(tmp_path: Path, venv: Path) -> Iterator[Terminal]:
    with terminal(tmp_path) as found:
        found.reef_path = str(venv / "bin" / "reef")
        yield found


def test_one_version(here: Terminal, venv: Path) -> None:
    printed = run(str(venv / "bin" / "python"), "-c", "import reef; print(reef.__version__)", cwd=here.folder)
    assert printed == here.reef("--version").out
    told = "from importlib.metadata import version; print(version('reefd'))"
    assert run(str(venv / "bin" / "python"), "-c", told, cwd=here.folder) == printed


def test_what_it_holds(venv: Path) -> None:
    [site] = venv.glob("lib/python3*/site-packages")
    for path in (
        "harness_templates/chat/adapter.toml", "daemon/store/migrations/versions/m0001_first.py",
        "daemon/store/migrations/env.py", "recipes/harness_evolve/__init__.py", "reef/py.typed",
    ):  # fmt: skip
        assert (site / path).is_file(), path
    for folder in (ROOT / "recipes").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert (site / "recipes" / folder.name / "README.md").is_file(), folder.name
    for stray in ("tests", "bench", "docs"):
        assert not (site / stray).exists(), stray
    [licence] = site.glob("reefd-*.dist-info/licenses/LICENSE")
    assert "Apache License" in licence.read_text()


def test_its_entry_points_load(here: Terminal, venv: Path) -> None:
    script = (
        "import json\n"
        "from importlib.metadata import entry_points\n"
        "found = {g: {p.name: p.load().__name__ for p in entry_points(group=g)}"
        " for g in ('reef.recipes', 'reef.evaluators')}\n"
        "print(json.dumps(found))"
    )
    found = json.loads(run(str(venv / "bin" / "python"), "-c", script, cwd=here.folder))
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {group: set(names) for group, names in found.items()} == {
        group: set(names) for group, names in declared.items()
    }
    assert "harness_evolve" in here.reef("recipes").out


@pytest.mark.parametrize(("name", "text"), [("c.toml", TOML), ("c.yaml", YAML)])
def test_it_serves(here: Terminal, name: str, text: str) -> None:
    with StubProvider() as stub:
        (here.folder / name).write_text(text.format(url=stub.url))
        daemon = subprocess.Popen(
            [here.reef_path, "serve", "-c", name, "--reef.port", "0"],
            cwd=here.folder, env=here.environ, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert daemon.stderr is not None
            url = next(line.split()[-1] for line in daemon.stderr if line.startswith("reef serves at"))
            assert httpx.get(f"{url}/healthz", trust_env=False).json() == {"ok": True}
            assert here.ask("hi")[0] == "echo: hi"
            assert here.reef("scenarios", "--json").json[0]["recipe"] == "main"
            daemon.terminate()
            daemon.stderr.read()
            assert daemon.wait(timeout=20) == 0
        finally:
            daemon.kill()
            daemon.wait()
            daemon.stderr.close()
