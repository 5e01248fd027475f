"""One function per route of the wire: arguments in, `Call` out. What a route answers is told in `Client`."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from reef._protocol import INFERENCE_TIMEOUT_S, Call, segment
from reef.errors import Invalid
from reef.ids import check_scenario


def _scenario(name: str | None) -> dict[str, str]:
    return {} if name is None else {"x-reef-scenario": check_scenario(name)}


def _named(scenario: str) -> str:
    """A scenario as a segment of a path. Raises `Invalid` for what cannot name one."""
    return segment(check_scenario(scenario))


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def post(
    path: str, body: Mapping[str, Any], scenario: str | None, tags: Mapping[str, str], timeout_s: float | None
) -> Call:
    headers = _scenario(scenario) | {f"x-reef-tag-{name}": value for name, value in tags.items()}
    return Call("POST", path, body=dict(body), headers=headers, timeout_s=timeout_s or INFERENCE_TIMEOUT_S)


def report(
    references: Sequence[str],
    *,
    score: float | None,
    feedback: str | Mapping[str, Any] | None,
    scenario: str | None,
    metadata: Mapping[str, Any] | None,
    preferred: str | None,
    over: str | None,
    agent_record_id: str | None,
) -> Call:
    if score is not None and not _is_finite(score):
        raise Invalid("score must be a finite number", hint="for example 1 or 0.25")
    body = _given(
        score=score,
        feedback=feedback,
        metadata=metadata,
        preferred=preferred,
        over=over,
        agent_record_id=agent_record_id,
    )
    if references:
        body["references"] = [references] if isinstance(references, str) else list(references)
    return Call("POST", "/reef/report", body=body, headers=_scenario(scenario))


def _is_finite(score: float) -> bool:
    try:
        return isfinite(score)
    except OverflowError:  # a whole number that no float can hold
        return False


def reports(scenario: str | None, state: str | None, agent_record_id: str | None) -> Call:
    query = {"scenario": scenario, "state": state, "agent_record_id": agent_record_id}
    return Call("GET", "/reef/reports", query)


def logs(after: int, limit: int) -> Call:
    return Call("GET", "/reef/logs", {"after": after, "limit": limit})


def records(
    scenario: str | None,
    *,
    after_sequence: int | None,
    limit: int | None,
    request_type: str | None,
    order: str | None,
    payload: bool | None,
    kind: str | None,
    status: str | None,
    run: str | None,
    session: str | None,
    reported: bool | None,
    after: str | None,
    text: str | None,
) -> Call:
    path = "/reef/records" if scenario is None else f"/reef/scenarios/{_named(scenario)}/records"
    query = _given(
        after_sequence=after_sequence,
        limit=limit,
        request_type=request_type,
        order=order,
        payload=payload,
        kind=kind,
        status=status,
        run=run,
        session=session,
        reported=reported,
        after=after,
        text=text,
    )
    return Call("GET", path, query)


def record(scenario: str, record_id: str, raw: bool) -> Call:
    path = f"/reef/scenarios/{_named(scenario)}/records/{segment(record_id)}"
    return Call("GET", path, {"raw": True} if raw else {})


def explain(record_id: str) -> Call:
    return Call("GET", f"/reef/records/{segment(record_id)}")


def scenarios(archived: bool) -> Call:
    return Call("GET", "/reef/scenarios", {"archived": True} if archived else {})


def create_scenario(name: str, release_id: str | None) -> Call:
    return Call("POST", "/reef/scenarios", body=_given(name=name, release_id=release_id))


def update_scenario(name: str, training_mode: str) -> Call:
    path = f"/reef/scenarios/{_named(name)}/update"
    return Call("POST", path, body={"training_mode": training_mode})


def contract(scenario: str) -> Call:
    return Call("GET", f"/reef/scenarios/{_named(scenario)}/contract")


def archive(scenario: str) -> Call:
    return Call("DELETE", f"/reef/scenarios/{_named(scenario)}")


def releases(scenario: str) -> Call:
    return Call("GET", f"/reef/scenarios/{_named(scenario)}/releases")


def decide(verb: str, scenario: str, release_id: str, reason: str | None = None) -> Call:
    path = f"/reef/scenarios/{_named(scenario)}/{verb}"
    return Call("POST", path, body=_given(release_id=release_id, reason=reason))


def diff(scenario: str, start: str | None, end: str) -> Call:
    return Call("GET", f"/reef/scenarios/{_named(scenario)}/diff", _given(**{"from": start, "to": end}))


def harness(scenario: str | None, release_id: str | None, adapter: str | None) -> Call:
    query = {"release_id": release_id, "adapter": adapter}
    return Call("GET", "/reef/harness", query, headers=_scenario(scenario))


def adapters() -> Call:
    return Call("GET", "/reef/harness/adapters")


def train(
    text: str, scenario: str | None, session: str | None, release_id: str | None, agent_record_id: str | None
) -> Call:
    body = _given(text=text, session=session, release_id=release_id, agent_record_id=agent_record_id)
    return Call("POST", "/reef/train", body=body, headers=_scenario(scenario))


def models() -> Call:
    return Call("GET", "/v1/models")


def status() -> Call:
    return Call("GET", "/reef/status")


def steps(scenario: str | None, limit: int | None) -> Call:
    return Call("GET", "/reef/steps", {"scenario": scenario, "limit": limit})


def step(scenario: str, number: int) -> Call:
    return Call("GET", f"/reef/steps/{_named(scenario)}/{number}")


def cancel_step(scenario: str, number: int) -> Call:
    return Call("POST", f"/reef/steps/{_named(scenario)}/{number}/cancel", body={})


def run_step(scenario: str, number: int) -> Call:
    return Call("POST", f"/reef/steps/{_named(scenario)}/{number}/run", body={})


def events(scenario: str | None, last_event_id: str | None) -> Call:
    headers = {"accept": "text/event-stream"} | _given(**{"last-event-id": last_event_id})
    return Call("GET", "/reef/events", {"scenario": scenario}, headers=headers)
