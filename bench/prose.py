"""Text as agents send it: words that come again, and here and there something that does not."""

import random
import re

_WORDS = re.findall(
    r"\S+",
    "the function returns a list of open files when called without arguments and raises an error if any of "
    "them was closed before import class self def return value None True config path test assert result",
)


def prose(dice: random.Random, length: int) -> str:
    """So many characters. A fifth of the words are numbers that nobody sends twice."""
    words: list[str] = []
    size = 0
    while size < length + 1:
        words.append(dice.choice(_WORDS) if dice.random() < 0.8 else f"{dice.getrandbits(28):x}")
        size += len(words[-1]) + 1
    return " ".join(words)[:length]
