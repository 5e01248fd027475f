"""What a person asks for while no daemon answers is answered."""

from pathlib import Path

from reef_cli.tui.deciding import Deciding
from tests.e2e.running import running
from tests.stub_provider import StubProvider
from tests.tui.stage import Stage, play


def test_a_decision_says_that_it_was_not_made(tmp_path: Path) -> None:
    with StubProvider() as stub, running(tmp_path, "--upstream", stub.url) as daemon:
        daemon.ask("question")

        async def scene(stage: Stage) -> None:
            await stage.press("y")
            await stage.see("creation")
            daemon.kill()
            await stage.see("no daemon answers")
            screen = stage.app.screen
            assert isinstance(screen, Deciding)
            screen.check_out("default", "HEAD", "the first")
            await stage.see("published again as a new head")
            await stage.press("enter")
            await stage.told("not done: no daemon answers")

        play(daemon, scene)
