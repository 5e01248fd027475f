"""What each client leaves in each scenario: its records in the order in which they began, titles first.

`T` a turn, `t` a title, `s` a summary to go on with; `503`, `400` a turn that failed with that status, `cut`
one whose stream broke; `*` it is superseded; `x6` six times; `!` the client then ends with an error. An empty
cell is not tried: what is not streamed cannot break half-way, and SDKs sum nothing up.

Claude Code and Codex go on from the part of an answer that they got, so the `cut` one is not asked again and
not superseded. Claude Code reduces what was refused, six times. The AI SDK tells its model that a call which
was cut in chat cannot be read. pi 0.84.2 sums up between tasks only, and Claude Code when it is told to.
"""

from dataclasses import dataclass
from typing import Any

TABLE = """
client                            | text| tool | parallel| busy    | cut       | broken  | refused| long
openai-python chat streamed       | T   | T T  | T T     | 503* T  | cut !     | cut !   | 400 !  |
openai-python chat buffered       | T   | T T  | T T     | 503* T  |           |         | 400 !  |
openai-python responses streamed  | T   | T T  | T T     | 503* T  | cut !     | cut !   | 400 !  |
openai-python responses buffered  | T   | T T  | T T     | 503* T  |           |         | 400 !  |
anthropic-python messages streamed| T   | T T  | T T     | 503* T  | cut !     | cut !   | 400 !  |
anthropic-python messages buffered| T   | T T  | T T     | 503* T  |           |         | 400 !  |
openai-js chat streamed           | T   | T T  | T T     | 503* T  | cut !     | cut !   | 400 !  |
openai-js chat buffered           | T   | T T  | T T     | 503* T  |           |         | 400 !  |
openai-js responses streamed      | T   | T T  | T T     | 503* T  | cut !     | cut !   | 400 !  |
openai-js responses buffered      | T   | T T  | T T     | 503* T  |           |         | 400 !  |
ai-sdk chat streamed              | T   | T T  | T T     | 503* T  | cut T !   | cut !   | 400 !  |
ai-sdk chat buffered              | T   | T T  | T T     | 503* T  |           |         | 400 !  |
ai-sdk messages streamed          | T   | T T  | T T     | 503* T  | cut !     | cut !   | 400 !  |
ai-sdk messages buffered          | T   | T T  | T T     | 503* T  |           |         | 400 !  |
ai-sdk responses streamed         | T   | T T  | T T     | 503* T  | cut !     | cut !   | 400 !  |
ai-sdk responses buffered         | T   | T T  | T T     | 503* T  |           |         | 400 !  |
pi-1.6.0 chat                     | T   | T T  | T T     | 503* T  | cut* T T  | cut* T  | 400 !  | T s T
pi-1.6.0 messages                 | T   | T T  | T T     | 503* T  | cut* T T  | cut* T  | 400 !  | T s T
pi-1.6.0 responses                | T   | T T  | T T     | 503* T  | cut* T T  | cut* T  | 400 !  | T s T
pi-0.84.2 chat                    | T   | T T  | T T     | 503* T  | cut* T T  | cut* T  | 400 !  | T T
pi-0.84.2 messages                | T   | T T  | T T     | 503* T  | cut* T T  | cut* T  | 400 !  | T T
pi-0.84.2 responses               | T   | T T  | T T     | 503* T  | cut* T T  | cut* T  | 400 !  | T T
claude-code                       | T   | T T  | T T     | 503* T  | cut T T   | cut* T  | 400x6 !|
codex                             | T   | T T  | T T     | 503* T  | cut T T   | cut* T  | 400 !  | T s T
opencode                          | t T | t T T| t T T   | t 503* T| t cut* T T| t cut* T| t 400 !| t T s T
"""


@dataclass(frozen=True)
class Cell:
    words: list[str]
    fails: bool
    """Whether the client ends with an error."""


def cells() -> dict[tuple[str, str], Cell]:
    """(client, scenario) -> what it leaves, where that is tried."""
    head, *rows = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]
    found = {}
    for client, *row in rows:
        for scenario, cell in zip(head[1:], row, strict=True):
            if cell:
                said = cell.removesuffix("!").split()
                times = [word.partition("x") for word in said]
                words = [word for word, _, count in times for _ in range(int(count or 1))]
                found[client, scenario] = Cell(words, cell.endswith("!"))
    return found


def word(record: dict[str, Any]) -> str:
    """A record as the table writes it."""
    kind, status, http = record["kind"], record["status"], record["http_status"]
    if status == "complete":
        found = {"turn": "T", "title": "t", "compaction": "s"}.get(kind, kind)
    else:
        found = (
            ("cut" if http == 200 else str(http))
            if (kind, status) == ("turn", "failed")
            else f"{kind}-{status}"
        )
    return found + ("*" if record["superseded_by"] else "")
