"""What a person sees, word for word. A changed transcript is a changed contract: review it as one.

A file of `golden/` starts with the command line; what follows is stdout, then stderr after `--- stderr`,
then `--- exit N` where N is not 0. `REEF_GOLDEN=write` writes them anew.
"""

import os
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Ran, RunReef
from tests.fake_daemon import FakeDaemon

GOLDEN = Path(__file__).with_name("golden")


def transcript(command: str, ran: Ran, fake: FakeDaemon, folder: Path) -> str:
    text = f"{command}\n{ran.out}"
    text += f"--- stderr\n{ran.err}" if ran.err else ""
    text += f"--- exit {ran.code}\n" if ran.code else ""
    return text.replace(fake.url, "URL").replace(str(folder), "FOLDER")


@pytest.mark.parametrize("case", sorted(GOLDEN.glob("*.txt")), ids=lambda case: case.stem)
def test_transcript(case: Path, online: RunReef, fake: FakeDaemon, nowhere: Path) -> None:
    expected = case.read_text("utf-8")
    command = expected.partition("\n")[0]
    seen = transcript(command, online(*shlex.split(command)[2:]), fake, nowhere)
    if os.environ.get("REEF_GOLDEN") == "write":
        case.write_text(seen, "utf-8")
    assert seen == expected or os.environ.get("REEF_GOLDEN") == "write"
    assert max(map(len, seen.splitlines())) <= 110


def test_there_are_transcripts() -> None:
    assert len(list(GOLDEN.glob("*.txt"))) >= 10
