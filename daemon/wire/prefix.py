"""What a release puts in front of a request, in no dialect's words yet."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prefix:
    """`system` is one text (rules and skills), `turns` worked examples as (user, assistant) pairs."""

    system: str = ""
    turns: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.system or self.turns)
