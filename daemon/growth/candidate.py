"""Making a candidate of a proposal: a tree, its content, and a commit that can be shown and diffed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from daemon.harness.files import to_files
from daemon.harness.mutations import apply
from daemon.releases.commits import CommitPlan, commit_message
from daemon.releases.git import GitReleases
from reef.tree import HarnessTree, Mutation


@dataclass(frozen=True, slots=True)
class Candidate:
    """`candidate_id` is a commit on the base release, kept under the step's candidate ref."""

    candidate_id: str
    content_id: str
    tree: HarnessTree


async def make(
    git: GitReleases,
    *,
    scenario: str,
    step: int,
    recipe: str,
    base_release_id: str,
    tree: HarnessTree,
    mutations: Sequence[Mutation],
    summary: str,
    reason: str,
    recorded_at: str,
) -> Candidate:
    """Apply, store and commit. `recorded_at` is the step's own time, so a repeat gives the same id.

    Raises:
        Refused: a mutation does not apply.
    """
    changed = apply(tree, mutations)
    content_id = await asyncio.to_thread(git.write_tree, to_files(changed))
    message = commit_message(
        summary, reason, scenario=scenario, step=step, operation="candidate", recipe=recipe
    )
    plan = CommitPlan(
        scenario=scenario,
        content_id=content_id,
        parent=base_release_id,
        message=message,
        recorded_at=datetime.fromisoformat(recorded_at),
    )
    candidate_id = await asyncio.to_thread(git.commit, plan)
    await asyncio.to_thread(git.keep_candidate, scenario, step, candidate_id)
    return Candidate(candidate_id, content_id, changed)
