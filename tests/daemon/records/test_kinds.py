"""What each recorded shape of a request was for. The texts are our own, the shapes the agents'."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.records.kinds import kind_of
from daemon.wire.codec import codec_for
from reef.runtime import DIALECTS, Dialect
from tests.daemon.records.desk import Desk

TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
TITLE = (
    "Write a title for this coding session that says what it is about, in 3-7 words, as JSON with one field."
)
THREAD = (
    "You are a title generator. Your answer is the name of the thread and nothing else: a single line, brief."
)
HANDOFF = (
    "Now make a detailed summary of the conversation above: what was asked, which files were changed, which "
    "errors came up and what is still to be done. It takes the place of everything said so far, so that the "
    "work can continue without losing context. Use no tools; answer with the summary only."
)
CHECKPOINT = (
    "You are about to run out of room. Write a handoff summary for another LLM that will resume the task: "
    "current progress and decisions, constraints that the user named, remaining steps, and file names that "
    "the next one needs to know. Be structured and leave nothing out that matters to the work ahead of it."
)
SUMMARISER = (
    "You are a context summarization assistant. You read a conversation of a user with a coding assistant "
    "and write a summary of it. Do not continue the conversation yourself."
)
BILLING = {"type": "text", "text": "x-billing: version=2.1; entry=cli"}


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


HISTORY = [said("user", "Fix the test"), said("assistant", "I read it."), said("user", "Go on")]

CASES: list[tuple[str, Dialect, dict[str, Any], str]] = [
    (
        "claude code title",
        "messages",
        {
            "system": [
                BILLING,
                {"type": "text", "text": "You are an agent."},
                {"type": "text", "text": TITLE},
            ],
            "messages": [user("<session>\nfix the login button\n</session>")],
            "output_config": {"format": {"type": "json_schema"}},
            "tools": [],
        },
        "title",
    ),
    (
        "claude code title with the answer begun",
        "messages",
        {"system": TITLE, "messages": [said("user", "fix it"), said("assistant", "{")]},
        "title",
    ),
    (
        "opencode title",
        "chat",
        {
            "messages": [
                said("system", THREAD),
                said("user", "Generate a title for this conversation:\n"),
                said("user", "rename the module"),
            ],
            "stream": True,
        },
        "title",
    ),
    (
        "pi title over responses",
        "responses",
        {"input": [said("developer", THREAD), user("rename it")], "store": False},
        "title",
    ),
    (
        "claude code compaction keeps its tools",
        "messages",
        {
            "system": "You are an agent.",
            "tools": TOOLS,
            "messages": [*HISTORY[:2], user("<reminder/>", HANDOFF)],
        },
        "compaction",
    ),
    (
        "codex compaction",
        "responses",
        {
            "instructions": "You are a coding agent.",
            "input": [
                *(said(message["role"], message["content"]) | {"type": "message"} for message in HISTORY[:2]),
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": CHECKPOINT}]},
            ],
            "tools": [],
        },
        "compaction",
    ),
    (
        "pi compaction",
        "chat",
        {
            "messages": [
                said("system", SUMMARISER),
                said(
                    "user",
                    "<conversation>\n" + "x\n" * 9000 + "</conversation>\n\n"
                    "Write a checkpoint summary of these messages, for another LLM to continue the work.",
                ),
            ]
        },
        "compaction",
    ),
    (
        "opencode compaction",
        "chat",
        {
            "messages": [
                said("system", f"{SUMMARISER} Say what helps to continue the session."),
                *HISTORY[:2],
                said("user", "Give a summary of our conversation."),
            ]
        },
        "compaction",
    ),
    (
        "a first turn",
        "messages",
        {
            "system": "You are an agent.",
            "tools": TOOLS,
            "messages": [user("fix the title of the session page")],
        },
        "turn",
    ),
    ("a turn with a result", "messages", {"tools": TOOLS, "messages": HISTORY}, "turn"),
    (
        "an agent whose own prompt speaks of titles and summaries",
        "messages",
        {
            "system": f"You are a coding agent.\n{TITLE}\n{HANDOFF}",
            "tools": TOOLS,
            "messages": [user("hello")],
        },
        "turn",
    ),
    (
        "an app that writes titles for articles",
        "chat",
        {"messages": [said("system", "Write a short title for the article, 5 words."), said("user", "Text")]},
        "turn",
    ),
    (
        "an app that sums up support conversations",
        "chat",
        {
            "messages": [
                said("system", "Write a summary of this support conversation for the team lead."),
                said("user", "Customer: hi. Clerk: hello."),
            ]
        },
        "turn",
    ),
    (
        "a person who asks for a summary",
        "chat",
        {
            "tools": TOOLS,
            "messages": [*HISTORY[:2], said("user", "Summarize our conversation, then continue.")],
        },
        "turn",
    ),
    (
        "a person who builds compaction",
        "messages",
        {
            "tools": TOOLS,
            "messages": [
                *HISTORY[:2],
                user(
                    "Implement context compaction in the agent: near the limit it writes a summary of the "
                    "conversation, keeps the last messages and continues. Add a test that shows that the LLM "
                    "gets the summary, and that nothing of the session is lost when it resumes after that."
                ),
            ],
        },
        "turn",
    ),
    (
        "a person who asks for a title",
        "chat",
        {"messages": [said("user", "Suggest a short title for this chat, 5 words")]},
        "turn",
    ),
    (
        "a chat under a prompt that speaks of titles",
        "chat",
        {"messages": [said("system", THREAD), *HISTORY]},
        "turn",
    ),
]


@pytest.mark.parametrize(("dialect", "body", "kind"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_what_a_request_was_for(dialect: Dialect, body: dict[str, Any], kind: str) -> None:
    assert kind_of(codec_for(dialect).facts(json.dumps(body).encode())) == kind


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tools", "output"]), inner, max_size=4
        ),
    ),
    max_leaves=10,
)


@given(st.sampled_from(DIALECTS), st.dictionaries(st.sampled_from(["messages", "input", "system"]), JSON))
def test_whatever_a_request_holds_it_was_something(dialect: Dialect, body: dict[str, Any]) -> None:
    assert kind_of(codec_for(dialect).facts(json.dumps(body).encode())) in {"turn", "title", "compaction"}


def test_the_record_says_what_it_was(desk: Desk) -> None:
    asked = {"messages": [said("system", THREAD), said("user", "rename the module")]}
    draft = desk.draft(request=json.dumps(asked).encode())
    desk.run(desk.book.append(draft))
    assert draft.kind == "title"
    assert desk.verdict(desk.lesson(draft.id)) == ("ineligible", "not_a_turn")


def test_what_the_daemon_knows_is_left_alone(desk: Desk) -> None:
    asked = {"messages": [said("system", THREAD), said("user", "rename the module")]}
    draft = desk.draft(request=json.dumps(asked).encode(), kind="episode")
    desk.run(desk.book.append(draft))
    assert draft.kind == "episode"
