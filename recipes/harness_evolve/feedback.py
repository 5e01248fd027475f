"""Proposer `feedback`: what a user said of a bad answer becomes a rule, in the user's own words."""

import hashlib
import unicodedata

from recipes.harness_evolve.options import EvolveOptions, is_well_scored
from reef.recipe import StepContext
from reef.tree import HarnessTree, Mutation, Proposal


async def propose(context: StepContext, options: EvolveOptions) -> Proposal | None:
    """One new rule from the texts of this batch that no rule says yet; no model is called."""
    there = _said(context.tree)
    texts: dict[str, str] = {}
    for unit in context.batch:
        text = unit.report.text
        if text and not is_well_scored(unit.report, options) and _key(text) not in there:
            texts.setdefault(_key(text), text)
    wanted = list(texts.values())
    if len(wanted) > 1:
        wanted = [text for text in wanted if _is_fine(context, text)]
    if not wanted:
        return None
    return Proposal(
        mutations=(_rule(wanted),),
        reason=f"feedback asked for it: {_short(wanted[0])}"
        + (f" (and {len(wanted) - 1} more)" * (len(wanted) > 1)),
        proposer="feedback",
        title=_short(wanted[0]),
    )


def _is_fine(context: StepContext, text: str) -> bool:
    """Whether a text may be a rule; one that may not should not keep the others out."""
    refusals = context.check([_rule([text])])
    for refusal in refusals:
        context.note(f"feedback: left out {_short(text)}: {refusal.message}")
    return not refusals


def _rule(texts: list[str]) -> Mutation:
    text = texts[0] if len(texts) == 1 else "\n".join(f"- {' '.join(one.split())}" for one in texts)
    digest = hashlib.sha256("\n".join(map(_key, texts)).encode("utf-8", "replace")).hexdigest()
    return Mutation("create", f"feedback-{digest[:10]}", "rules", {"text": text})


def _said(tree: HarnessTree) -> set[str]:
    """What the rules say already, disabled ones too: somebody switched those off."""
    found: set[str] = set()
    for entry in tree.entries:
        if entry.name == "rules":
            text = str(entry.config.get("text", ""))
            found |= {_key(text), *(_key(line.removeprefix("- ")) for line in text.splitlines())}
    return found


def _key(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".!")


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return f'"{flat}"' if len(flat) <= 70 else f'"{flat[:67]}..."'
