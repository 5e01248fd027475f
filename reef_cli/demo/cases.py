"""The demo's questions. Each asks for the one word that its sentence holds.

Three sets that share no name and no city: what users ask and correct, what the gate decides on, and what
nobody but the demo itself ever sees before it is asked again at the end.
"""

from dataclasses import dataclass

_TRAFFIC = ("Anna", "Paris"), ("Ben", "London"), ("Clara", "Madrid"), ("David", "Rome")
_GATE = (
    *(("Emma", "Berlin"), ("Felix", "Vienna"), ("Grace", "Prague"), ("Hugo", "Dublin")),
    *(("Iris", "Lisbon"), ("Jack", "Oslo"), ("Karen", "Athens"), ("Leo", "Warsaw")),
    *(("Mia", "Tokyo"), ("Noah", "Cairo"), ("Olga", "Lima"), ("Paul", "Boston")),
)
_HELD_OUT = (
    *(("Rosa", "Chicago"), ("Sam", "Toronto"), ("Tina", "Sydney"), ("Victor", "Moscow")),
    *(("Wendy", "Delhi"), ("Mark", "Seoul"), ("Yara", "Havana"), ("Zoe", "Nairobi")),
    *(("Nina", "Geneva"), ("Oscar", "Munich")),
)

RULE = "Answer with the name of the city and nothing else."
"""What the user of the demo says of each wrong answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question and its answer."""

    prompt: str
    expected: str

    def is_right(self, answer: str) -> bool:
        return answer.strip() == self.expected


def _cases(pairs: tuple[tuple[str, str], ...]) -> tuple[Case, ...]:
    return tuple(Case(f"Which city? {name} lives in {city}.", city) for name, city in pairs)


TRAFFIC = _cases(_TRAFFIC)
GATE = _cases(_GATE)
HELD_OUT = _cases(_HELD_OUT)
