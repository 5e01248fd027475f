"""What an agent sees of a tree."""

import pytest

from daemon.harness.adapters import adapter, adapters
from daemon.harness.render import Skipped, chat_prefix, render
from reef.errors import NotFound
from reef.tree import Entry, HarnessTree

TREE = HarnessTree(
    (
        Entry("s", "skill", {"name": "units", "description": "On units.", "text": "Use SI."}),
        Entry("off", "rules", {"text": "No."}, disabled=True),
        Entry("c", "agent_command", {"name": "fix", "text": "Fix"}),
        Entry("e", "examples", {"turns": [{"user": "q", "assistant": "a"}, {"user": "r", "assistant": "b"}]}),
        Entry("r", "rules", {"text": "Be brief."}),
    )
)


def test_chat_prefix() -> None:
    prefix = chat_prefix(TREE)
    assert prefix.system == "## Skill: units\nOn units.\n\nUse SI.\n\nBe brief."
    assert prefix.turns == (("q", "a"), ("r", "b"))
    assert not chat_prefix(HarnessTree())


def test_render_for_chat() -> None:
    rendered = render(TREE, "chat")
    assert rendered.files["rules/r.md"] == "Be brief.\n"
    assert rendered.skipped == (
        Skipped("off", "disabled"), Skipped("c", "the chat adapter has no use for `agent_command`"),
    )  # fmt: skip


def test_adapters() -> None:
    assert adapters()["chat"].inject
    assert adapter("chat").to_wire() == {
        "name": "chat", "binary": None, "trajectory_format": "messages",
        "model_bindings": ("chat", "messages", "responses"), "install": None,
    }  # fmt: skip
    with pytest.raises(NotFound, match="no adapter"):
        adapter("../chat")
