"""What a step leaves in the release history: the row of one that published nothing, and the evidence."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import RowMapping

from daemon.releases.catalog import Row
from reef.ids import now, rfc3339


def listed(
    step: RowMapping | Mapping[str, Any],
    message: str,
    metrics: dict[str, Any] | None,
    *,
    pending: bool = False,
) -> Row:
    """The history's row of a step that has not (or not yet) become a release.

    `step` are the step's columns; `message` stands where the step has no reason of its own.
    """
    return Row(
        scenario=step["scenario"],
        step=step["step"],
        operation="training",
        release_id=step["base_release_id"],
        content_id=step["content_id"] or step["base_content_id"],
        recorded_at=rfc3339(now()),
        recipe=step["recipe"],
        published=False,
        parent_release_id=step["base_release_id"],
        candidate_id=step["candidate_id"],
        pending=pending,
        message=(step["reason"] or message).splitlines()[0],
        metrics=metrics,
    )


def said(metrics: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """What a release's commit says: its score, and the evidence for it."""
    scores = metrics.get("candidate_scores")
    score = f"{sum(scores.values()) / len(scores):.3f}" if scores else None
    if "wins" not in metrics:
        return score, ()
    return score, (f"{metrics['wins']} wins, {metrics['losses']} losses, {metrics['ties']} ties",)
