"""Which fields a bridge left out."""

from collections.abc import Collection, Mapping

from daemon.wire.values import Json, clean


class Dropped:
    """Collects field paths, each once; `[]` stands for any index."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def note(self, path: str) -> None:
        self._paths[clean(path)] = None

    def rest(self, value: Json, known: Collection[str], at: str = "") -> None:
        """Note the members that say something and are not among the known ones."""
        for key, member in value.items():
            if key not in known and member is not None and member not in ([], {}):
                self.note(f"{at}{key}")

    def paths(self, names: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """The paths; `names` says what some of them are called elsewhere."""
        return tuple(dict.fromkeys((names or {}).get(path, path) for path in self._paths))
