"""Every action with its keys and its words. Keys, footer, palette and help all read this table.

`scope` is the mode in which an action works; an empty one works everywhere. The method that performs it is
`action_<id>` of the screen (or of the app, for those that work everywhere). `{key}` in an id stands for the
key that was pressed; the palette leaves such actions out.
"""

from typing import Any, NamedTuple

from textual.actions import parse
from textual.binding import Binding, BindingType
from textual.screen import Screen


class Action(NamedTuple):
    """`keys` are Textual key names, comma-separated; `footer` is its word there, empty to leave it out.
    `words` are others that people look for in the palette."""

    id: str
    keys: str
    title: str
    help: str
    scope: str = ""
    footer: str = ""
    words: str = ""


_SIGNS = {"question_mark": "?", "plus": "+", "minus": "-", "slash": "/"}

ACTIONS: tuple[Action, ...] = (
    Action("view('story')", "v", "Story", "What the step did and why.", "step", "Story"),
    Action("view('diff')", "d", "Diff", "What the candidate changes.", "step", "Diff"),
    Action("view('episodes')", "g", "Episodes", "Its evaluation, task by task.", "step", "Episodes"),
    Action("split", "w", "Split", "The diff side by side, or in one column.", "step", "Split"),
    Action("promote", "p", "Promote", "Serve the candidate that waits for review.", "step", "Promote"),
    Action("reject", "x", "Reject", "Close the candidate, with a reason.", "step", "Reject"),
    Action("run", "r", "Run", "Let it run: it waits for money, or failed.", "step", "Run"),
    Action("cancel", "c", "Cancel", "End the step without a release.", "step", "Cancel"),
    Action("back", "escape", "Back", "To the list of steps.", "step", "Back"),
    Action("diff", "d", "Diff", "What the step's candidate changes.", "steps", "Diff"),
    Action("diff", "d", "Diff", "What this release changed.", "history", "Diff"),
    Action("mark", "space", "Compare", "Mark two releases to compare them.", "history", "Compare"),
    Action(
        "check_out",
        "b",
        "Serve again (check out)",
        "Publish the content of this release once more.",
        "history",
        "Serve again",
        "rollback roll back undo",
    ),
    Action("promote", "p", "Promote", "Serve the candidate that waits for review.", "history", "Promote"),
    Action("reject", "x", "Reject", "Close the candidate, with a reason.", "history", "Reject"),
    Action("everything", "a", "All", "Also the steps that published nothing.", "history", "All"),
    Action("split", "w", "Split", "The diff side by side, or in one column.", "compare", "Split"),
    Action("back", "escape", "Back", "To the history.", "compare", "Back"),
    Action("rendered", "v", "Rendered", "The files as they are installed or sent.", "tree", "Rendered"),
    Action("go('home')", "h", "Home", "All scenarios and what growth does right now.", footer="Home"),
    Action("go('traffic')", "t", "Traffic", "The records, as they come.", footer="Traffic"),
    Action("go('inbox')", "i", "Inbox", "Turns without feedback, and reports that wait.", footer="Inbox"),
    Action("go('steps')", "s", "Steps", "What growing did, step by step.", footer="Steps"),
    Action(
        "go('history')",
        "y",
        "History",
        "The releases: compare, serve, decide.",
        footer="History",
    ),
    Action("go('tree')", "e", "Tree", "The served harness, entry by entry.", footer="Tree"),
    Action("pick_scenario", "o", "Scenario", "Choose which one the screens show.", footer="Scenario"),
    Action("go('runtimes')", "n", "Runtimes", "Who answers: upstreams and engine.", footer="Runtimes"),
    Action("go('log')", "l", "Log", "The daemon's log.", footer="Log"),
    Action("help", "question_mark", "Help", "The keys that work here.", footer="Help"),
    Action("toggle_dark", "ctrl+t", "Light or dark", "Switch between a light and a dark theme."),
    Action("score(1)", "plus", "Score 1", "The answer was right.", "inbox", "1"),
    Action("score(0)", "minus", "Score 0", "The answer was wrong.", "inbox", "0"),
    Action(
        "tenths('{key}')",
        "0,1,2,3,4,5,6,7,8,9",
        "Score in tenths",
        "0 is 0.0 ... 9 is 0.9; for 1 press +.",
        "inbox",
    ),
    Action("take_back", "z", "Take back", "Undo the last, until it is sent.", "inbox", "Undo"),
    Action("feedback", "f", "Feedback", "Write what was good or bad.", "inbox", "Feedback"),
    Action("correction", "c", "Correction", "Write the right answer.", "inbox", "Fix"),
    Action("mark", "space", "Mark", "Several, for the next score or feedback.", "inbox", "Mark"),
    Action("whole", "a", "Whole session", "The next score goes to all of it.", "inbox", "Session"),
    Action("only", "escape", "Only this turn", "No marks, and not the session.", "inbox"),
    Action("sides", "r", "Turns or reports", "Switch between the two lists.", "inbox", "Reports"),
    Action(
        "search",
        "slash",
        "Filter",
        "By what was said, kind:, status:, model:, session:.",
        "traffic",
        "Filter",
    ),
    Action("clear", "escape", "No filter", "Show every record again.", "traffic"),
    Action("everywhere", "a", "All scenarios", "Or only the one picked.", "traffic", "All"),
    Action("next_view", "v", "Next view", "Conversation, story, bytes.", "record", "View"),
    Action("raw", "r", "Raw", "The bytes, or the conversation.", "record", "Raw"),
    Action("story", "x", "Story", "Release, reports, verdicts, step.", "record", "Story"),
    Action("leave", "escape", "Back", "To where it was opened.", "record", "Back"),
    Action("level", "v", "Level", "All lines, or only the grave ones.", "log", "Level"),
    Action("quit", "q", "Quit", "Leave; the daemon goes on.", footer="Quit"),
)


def actions_in(scope: str) -> list[Action]:
    """What works in a mode: its own actions first, then those that work everywhere."""
    return [action for action in ACTIONS if action.scope == scope] + (
        [action for action in ACTIONS if not action.scope] if scope else []
    )


def works(action: Action, screen: Screen[Any]) -> bool:
    """Whether a screen allows an action now; what works everywhere always does."""
    _, name, parameters = parse(action.id)
    return not action.scope or bool(screen.check_action(name, parameters))


def bindings(scope: str) -> list[BindingType]:
    """Textual's bindings for the actions of one scope (`""`: the app's own)."""
    return [
        Binding(
            key,
            action.id.replace("{key}", key),
            action.footer or action.title,
            show=bool(action.footer) and at == 0,
        )
        for action in ACTIONS
        if action.scope == scope
        for at, key in enumerate(action.keys.split(","))
    ]


def shown_key(action: Action) -> str:
    """The first key of an action as people write it."""
    return _shown(action.keys.split(",")[0])


def shown_keys(action: Action) -> str:
    """All its keys; many in a row as a range."""
    names = [_shown(key) for key in action.keys.split(",")]
    return f"{names[0]} ... {names[-1]}" if len(names) > 4 else " ".join(names)


def _shown(key: str) -> str:
    return _SIGNS.get(key, key.replace("_", " "))
