"""Fetching a model from an https address, against the checksum that its publisher gives."""

import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import httpx

from daemon.runtimes.gguf import begins_as_gguf
from daemon.runtimes.keeping import Progress, keep, unfinished
from reef import __version__
from reef._url import http_address
from reef.errors import Invalid, ReefError, Unavailable
from reef.home import is_loopback

_TIMEOUT = httpx.Timeout(60.0, connect=15.0)
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")
_ELSE = "check the address and the network; nothing was kept, so try again"


def checked_sha256(text: str) -> str:
    """A checksum as it is compared: 64 small hexadecimal digits. Raises `Invalid`."""
    if found := _SHA256.fullmatch(text.strip()):
        return found[1].lower()
    raise Invalid(f"`{text}` is no sha256", hint="it has 64 hexadecimal digits: sha256sum FILE")


def name_in(url: str) -> str:
    """What a model from `url` is called unless it is given a name. Raises `Invalid` where that is no http
    address."""
    return unquote(http_address(url).path.rstrip("/").rpartition("/")[2]).removesuffix(".gguf")


def fetch_url(url: str, target: Path, sha256: str, on_progress: Progress) -> Path:
    """Fetch the GGUF file at `url` into `target`. `sha256` as `checked_sha256` gives it.

    Raises:
        Invalid: it is no https address (plain http only on this machine).
        Unavailable: it leads to where it would come unencrypted, it could not be downloaded or kept whole, or
            what came is not what was expected.
    """
    parts = http_address(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise Invalid(f"`{url}` is not https", hint="give the https address of the file")
    with unfinished(target) as folder:
        file = folder / "model.gguf"
        try:
            _download(url, file, on_progress)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            raise Unavailable(f"{url} could not be fetched whole: {why}", hint=_ELSE) from error
        return keep(file, target, sha256=sha256, source=url)


def _download(url: str, file: Path, on_progress: Progress) -> None:
    headers = {"accept-encoding": "identity", "user-agent": f"reef/{__version__}"}
    local = httpx.URL(url).scheme == "http"

    def check(request: httpx.Request) -> None:
        """Each redirect is a request too."""
        place = request.url
        if place.scheme != "https" and not (local and is_loopback(place.host)):
            raise Unavailable(f"{url} leads to {place}, which is not https", hint="take another address")

    hooks = {"request": [check]}
    with (
        httpx.Client(timeout=_TIMEOUT, follow_redirects=True, headers=headers, event_hooks=hooks) as client,
        client.stream("GET", url) as answer,
        file.open("wb") as sink,
    ):
        if answer.status_code != 200:
            raise _refused(url, answer.status_code)
        _check_room(file.parent, answer.headers.get("content-length", ""))
        come = 0
        for chunk in answer.iter_bytes(1 << 20):
            if come == 0 and not begins_as_gguf(chunk):
                raise Unavailable(
                    f"what is at {url} is no GGUF file", hint="give the address of the file itself"
                )
            sink.write(chunk)
            come += len(chunk)
            on_progress(come / 1e6)
        sink.flush()
        os.fsync(sink.fileno())


def _refused(url: str, status: int) -> ReefError:
    hint = {
        401: "it wants a login: download it by hand, then reef models add FILE",
        403: "it wants a login: download it by hand, then reef models add FILE",
        404: "check the address",
    }.get(status, _ELSE)
    return Unavailable(f"{url} answered {status}", hint=hint)


def _check_room(folder: Path, length: str) -> None:
    """Raise `Unavailable` before a download that cannot fit."""
    free = shutil.disk_usage(folder).free
    if length.isdigit() and int(length) > free:
        raise Unavailable(
            f"the model has {int(length) / 1e6:.0f} MB, and {folder.parent} has room for {free / 1e6:.0f} MB",
            hint="free some space, or set XDG_DATA_HOME",
        )
