"""What a request was for: a turn of a conversation, its title, or a summary to go on with.

Agents ask for titles and summaries beside what their user asked. Such an answer teaches nothing about the
work, so it is told apart; and since a mistake would keep a real turn from teaching, each needs several signs
at once, close to each other. An app that writes titles or summaries as its work lacks one of them.
"""

import re

from daemon.records.draft import RecordKind
from daemon.wire.facts import RequestFacts
from daemon.wire.values import content_text
from reef.feedback import Message

_HEAD_CHARS = 20_000
_SPREAD_CHARS = 600
"""How far apart the signs may be."""
_PASTED_CHARS = 200
"""An instruction is at least this long; people ask for summaries in fewer words, and that is a turn."""

_WRITE = r"(?:generat|creat|writ|output|produc|extract|suggest|summari[sz]|return|compos|provid|come up)\w*"
_TITLE = re.compile(rf"\b{_WRITE}\b[^.\n]{{0,80}}\btitle\b|\btitle[ -](?:generator|writer)\b", re.I)
_SESSION = re.compile(r"\b(?:conversation|session|thread|chat)\b", re.I)
_SHORT = re.compile(
    r"\d[\w\s-]{0,12}\b(?:words?|char(?:acter)?s?)\b|\b(?:single|one) line\b|\b(?:short|concise|brief)\b",
    re.I,
)

_WHAT = r"(?:conversation|context|session|transcript|history|messages|progress|work)"
_SUMMARY = re.compile(
    rf"\bsummar\w+\b[^.\n]{{0,80}}\b{_WHAT}s?\b|\b{_WHAT}s?\b[^.\n]{{0,80}}\bsummar\w+"
    rf"|\b{_WHAT}\b[^.\n]{{0,40}}\bcompact\w+|\bhand-?off summary\b",
    re.I,
)
_OF_THIS = re.compile(
    r"\bsummar\w+\b[^.\n]{0,80}\b(?:conversation|session|discussion|messages|chat)\b"
    r"[^.\n]{0,20}\b(?:so far|above|until now|up to (?:this|now))\b"
    r"|\bhand-?off summary\b|\bcheckpoint (?:compaction|summary)\b",
    re.I,
)
"""A summary of what was said in this very request: people who build such things speak of summaries too."""
_HINTS = ("title", "summar", "compact", "handoff", "hand-off")
"""No title, summary or compaction is asked for without one of these."""
_ONWARD = re.compile(
    r"\bcontinu(?:e|es|ed|ing)\b|\bresum(?:e|es|ing)\b|\bhand-?off\b|\bcheckpoint\b|\bcompact(?:ion|ing)\b"
    r"|\bwithout losing\b",
    re.I,
)
_MACHINE = re.compile(r"\b(?:LLM|language model|AI|assistant|agent|coding|context|code)\b", re.I)


def kind_of(facts: RequestFacts) -> RecordKind:
    """`turn`, `title` or `compaction`, by what the request says."""
    messages = facts.messages
    spoken = [message for message in messages if message["role"] != "system"]
    system = "\n".join(
        content_text(message["content"]) for message in messages if message["role"] == "system"
    )
    system = system[:_HEAD_CHARS]
    if not facts.payload.get("tools"):
        if _opens(spoken) and _together(system, _TITLE, _SESSION, _SHORT):
            return "title"
        if _together(_with_end(system, spoken), _SUMMARY, _ONWARD, _MACHINE) and _SUMMARY.search(system):
            return "compaction"
    return "compaction" if _is_compacted(spoken) else "turn"


def _opens(spoken: list[Message]) -> bool:
    """Whether nobody has answered yet; an assistant's text at the end is the answer's own beginning."""
    return all(message["role"] == "user" for message in spoken[:-1])


def _is_compacted(spoken: list[Message]) -> bool:
    """Whether a conversation ends with an instruction to sum it up for whoever goes on with it."""
    if not spoken or spoken[-1]["role"] != "user":
        return False
    asked = content_text(spoken[-1]["content"])
    return (
        any(message["role"] == "assistant" for message in spoken)
        and len(asked) >= _PASTED_CHARS
        and _together(asked[:_HEAD_CHARS], _OF_THIS, _ONWARD, _MACHINE)
    )


def _with_end(system: str, spoken: list[Message]) -> str:
    """The system text and the end of what the user says, where the instruction follows what is summed up."""
    asked = content_text(spoken[-1]["content"]) if spoken else ""
    return f"{system}\n{asked[-_SPREAD_CHARS:]}"


def _together(text: str, first: re.Pattern[str], *others: re.Pattern[str]) -> bool:
    """Whether around one place of `first` all `others` are found too."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):  # far cheaper to find out, and so it is nearly always
        return False
    for found in first.finditer(text):
        near = text[max(found.start() - _SPREAD_CHARS, 0) : found.end() + _SPREAD_CHARS]
        if all(other.search(near) for other in others):
            return True
    return False
