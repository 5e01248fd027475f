"""Reading what was said off payloads of all three dialects, and off anything else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reef_cli.tui.conversation import Part, answer_of, answered, asked, prompt_of
from reef_cli.tui.widgets.transcript import PART_CHARS, rendered

CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "find it"}, {"type": "image_url", "image_url": {}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ],
    "response": {"choices": [{"message": {"reasoning_content": "hm", "content": "there"}}]},
}
MESSAGES = {
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "find it"}, {"type": "image", "source": {}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "find", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "found"}]}
            ],
        },
    ],
    "response": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "there"}]},
}
RESPONSES = {
    "instructions": "Be brief.",
    "input": [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "find it"}, {"type": "input_image", "image_url": "x"}],
        },
        {"type": "function_call", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ],
    "response": {
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "there"}]},
        ]
    },
}


@pytest.mark.parametrize("payload", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
def test_every_dialect_is_read_alike(payload: dict[str, Any]) -> None:
    said = asked(payload)
    assert [(part.role, part.kind) for part in said] == [
        ("system", "text"),
        ("user", "text"),
        ("user", "other"),
        ("assistant", "call"),
        ("tool", "result"),
    ]
    assert said[2].text.split(",")[0].split()[-1] in ("image", "url")
    assert said[3] == Part("assistant", "call", "{}", "find")
    assert said[4] == Part("tool", "result", "found", "c1")
    assert answered(payload) == [Part("assistant", "thinking", "hm"), Part("assistant", "text", "there")]
    assert (prompt_of(payload), answer_of(payload)) == ("find it", "there")


WORDS = """
    role content type text messages input output system instructions response choices message tool_calls
    function name arguments source summary thinking refusal reasoning image_url
"""
KEYS = st.sampled_from(WORDS.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["tool", "tool_use"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_no_payload_is_too_strange(payload: dict[str, Any]) -> None:
    text = rendered([*asked(payload), *answered(payload)]).plain
    assert "\x1b" not in text
    prompt_of(payload)
    answer_of(payload)


def test_a_very_long_part_is_cut_and_says_so() -> None:
    text = rendered([Part("user", "text", "x" * (PART_CHARS + 5))]).plain
    assert "5 more characters; the raw view has them" in text
