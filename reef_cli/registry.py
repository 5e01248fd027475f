"""Every command of `reef`: where it lives and what it does, in one line each.

Nothing here is imported before it is run, so that `reef --help` costs nothing. To add a command: a module
in `reef_cli/commands/` and a line here.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """`target` is `module:attribute` below `reef_cli.commands`; the attribute is a `typer.Typer`."""

    target: str
    help: str


COMMANDS: dict[str, Command] = {
    "init": Command("init:app", "Write a reef.toml and a tasks.toml that run as they are."),
    "up": Command("up:app", "Start the daemon in the background."),
    "down": Command("down:app", "Stop the daemon."),
    "status": Command("status:app", "What the daemon does, and whether it runs."),
    "demo": Command("demo:app", "The whole loop on a small model, in minutes, with real answers."),
    "logs": Command("logs:app", "The daemon's log."),
    "serve": Command("serve:app", "Run the daemon in the foreground."),
    "env": Command("env:app", "Shell lines that point OpenAI and Anthropic clients at the daemon."),
    "token": Command("token:app", "Print the daemon's token."),
    "watch": Command("watch:app", "What happens in the daemon, as plain lines."),
    "tui": Command("tui:app", "The terminal interface."),
    "recipes": Command("recipes:app", "The cookbook: what each recipe changes and needs."),
    "models": Command("models:app", "Local models: list them, add one."),
    "scenarios": Command("scenarios:app", "List, show, create and archive scenarios."),
    "records": Command("records:app", "The traffic that passed through."),
    "explain": Command("explain:app", "The story of one receipt."),
    "report": Command("report:app", "Give feedback on receipts."),
    "train": Command("train:app", "Ask for a change in plain words."),
    "pending": Command("pending:app", "What waits: for feedback, for a batch, for a review."),
    "steps": Command("steps:app", "What growing did."),
    "step": Command("step:app", "One step: batch, proposal, episodes, decision, cost."),
    "log": Command("log:app", "The release history."),
    "show": Command("show:app", "One release with its changes."),
    "diff": Command("diff:app", "The changes between two releases."),
    "checkout": Command("checkout:app", "Serve an earlier release, or write its files out."),
    "promote": Command("promote:app", "Serve a candidate that waits for review."),
    "reject": Command("reject:app", "Close a candidate that waits for review."),
}
