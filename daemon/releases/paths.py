"""Which file names a release may hold, so that it can be checked out on any disk and never outside it."""

import re
import unicodedata
from collections.abc import Iterable

from reef.errors import Refused

MAX_PATH_BYTES = 240
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_GIT_FOLDER = re.compile(r"(?i)(\.git|git~[0-9]+)[. ]*")


def check_path(path: str) -> str:
    """Return `path` if a release may hold it.

    Raises:
        Refused: rule `path`; it is absolute, leaves the tree, names git's own folder, or cannot be
            written on every common disk.
    """
    why = _objection(path)
    if why:
        raise Refused("path", f"`{path[:200]!r}` cannot be a file of a release: {why}")
    return path


def _objection(path: str) -> str:
    if not path or path.startswith("/") or path.endswith("/"):
        return "it must be a relative path of a file"
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    if _FORBIDDEN.search(path):
        return "it holds a character that is not allowed in file names"
    if any("\ud800" <= char <= "\udfff" for char in path) or unicodedata.normalize("NFC", path) != path:
        return "it is not normalised Unicode (NFC)"
    if any(unicodedata.category(char) == "Cf" for char in path):
        return "it holds an invisible character"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "it leaves the tree or has an empty part"
        if part.endswith((".", " ")) or part.startswith(" "):
            return "a part of it starts or ends with a space or ends with a dot"
        if _GIT_FOLDER.fullmatch(part):
            return "git keeps that name for itself"
        if _DEVICES.fullmatch(part):
            return "a part of it is a device name on Windows"
    return ""


def check_paths(paths: Iterable[str]) -> None:
    """Check each path, and that no two would be one file (or a file and a folder) on any disk.

    Raises:
        Refused: rule `path` or `path-collision`.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        folded = check_path(path).casefold()
        parts = folded.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        clash = (
            files.get(folded) or folders.get(folded) or next((files[up] for up in above if up in files), None)
        )
        if clash is not None:
            raise Refused("path-collision", f"`{path}` and `{clash}` would be one file on some disks")
        files[folded] = path
        folders.update(dict.fromkeys(above, path))
