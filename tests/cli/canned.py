"""A daemon's answers for one small history, as the commands see them."""

from typing import Any

R0, R1, C2 = "aa00" + "0" * 36, "bb11" + "0" * 36, "cc22" + "0" * 36
T0, T1 = "dd00" + "0" * 36, "dd11" + "0" * 36
RECEIPT = "01970000-0000-7000-8000-000000000001"

GATE = {
    "published": True,
    "selection": {"policy": "sequential", "outcome": "select", "reason": "the last look selected"},
    "wins": 8,
    "losses": 1,
    "ties": 3,
    "evidence": {"gain": 0.5833},
    "cost": {"episodes": 24, "input_tokens": 4000, "output_tokens": 120, "money": None, "seconds": 31.2},
}


def row(step: int, release_id: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {
        "step": step,
        "operation": "training",
        "release_id": release_id,
        "parent_release_id": parent,
        "candidate_id": None,
        "content_id": T1,
        "recorded_at": f"2026-01-31T12:0{step}:00.000Z",
        "recipe": "ready",
        "current": False,
        "pending": False,
        "tags": [],
        "message": "",
        "metrics": {},
    } | more


RELEASES = [
    row(3, R1, R0, candidate_id=C2, pending=True, message="Add a rule about units",
        metrics={"published": False, "selection": {"policy": "sequential", "outcome": "inconclusive",
                                                   "reason": "fewer than five gate tasks"}}),
    row(2, R1, R0, candidate_id="ee" + "0" * 38, message="Add a useless rule",
        metrics={"published": False, "selection": {"policy": "sequential", "outcome": "reject",
                                                   "reason": "no gate task changed"}}),
    row(1, R1, R0, current=True, candidate_id=R1, tags=["v1"], metrics=GATE,
        message="Add a rule from feedback\n\nA failing report said: Say the word ready."),
    row(0, R0, None, operation="creation", content_id=T0, message="Start the scenario ready"),
]  # fmt: skip

PAIR = {
    "receipt": RECEIPT,
    "recipe": "ready",
    "state": "eligible",
    "reason": "waiting_for_batch",
    "message": "",
    "step": None,
}
REPORT = {
    "agent_record_id": "rep-1",
    "scenario": "ready",
    "score": 0.0,
    "feedback": "Use metric units.",
    "references": [RECEIPT],
    "state": "eligible",
    "pairs": [PAIR],
}
RECORD = {
    "agent_record_id": RECEIPT,
    "scenario": "ready",
    "sequence": 1,
    "request_type": "inference",
    "created_at": "2026-01-31T12:00:00.000Z",
    "kind": "turn",
    "status": "complete",
    "dialect": "messages",
    "model": "claude-sonnet-4-5",
    "upstream": {"name": "local", "model": "qwen3:8b", "request_id": None},
    "dropped": ["top_k", "messages.0.cache_control"],
    "metadata": {"tags": {}, "bridged": "chat", "attempts": ["upstream `anthropic` answered 529"]},
    "release_id": R1,
    "usage": {"input_tokens": 12, "output_tokens": 3},
    "timing": {"total_ms": 812.4},
}
STEP = {
    "scenario": "ready",
    "step": 1,
    "state": "done",
    "outcome": "select",
    "started_at": "2026-01-31T12:01:00.000Z",
    "finished_at": "2026-01-31T12:02:00.000Z",
    "base_release_id": R0,
    "proposer": "feedback",
    "reports": ["rep-0"],
    "reason": "a failing report said so",
    "decision": "8 wins, 1 loss, 3 ties: published",
    "release_id": R1,
    "candidate_id": R1,
    "pending": False,
    "metrics": GATE,
    "error": None,
    "refused": None,
    "mutations": [
        {"op": "create", "id": "ready-rule", "options": {"name": "rules", "config": {"text": "Say ready."}}}
    ],
}
BATCH = [{"report": "rep-0", "receipts": [RECEIPT]}]
EPISODE = {"task": "ready-1", "split": "gate", "side": "candidate", "repeat": 0, "status": "ok", "score": 1.0,
           "why": "the answer is exact", "reused": False}  # fmt: skip
STATUS = {
    "version": "0.1.0",
    "pid": 4711,
    "home": "HOME",
    "url": "http://127.0.0.1:8900",
    "started_at": "2026-01-31T12:00:00.000Z",
    "error": None,
    "serving": {
        "upstreams": [{"name": "main", "kind": "http", "state": "ready", "model": "qwen3:8b",
                       "url": "http://127.0.0.1:11434"}],
        "why": "--upstream was given",
    },
    "storage": {"kind": "sqlite", "bytes": 12_300_000, "records": 421, "writable": True},
    "scenarios": {
        "ready": {"recipe": "ready", "processor": "harness_evolve", "surface": "harness", "release_id": R1,
                  "batch": {"have": 0, "need": 1}, "pending_reviews": 1, "pending_instructions": 0,
                  "step": {"step": 4, "state": "evaluating", "done": 3, "total": 12}}
    },
}  # fmt: skip
DIFF = "--- a/rules/ready-rule.md\n+++ b/rules/ready-rule.md\n@@ -0,0 +1 @@\n+Say ready.\n"


def harness(asked: Any) -> Any:
    ids = {"HEAD": R1, "HEAD~1": R0, "step:3": C2}
    rev = asked.query.get("release_id", "HEAD")
    if rev not in ids:
        return 404, {
            "error": {"type": "not_found", "message": f"no release `{rev}` in ready", "hint": "reef log"}
        }
    return {"release_id": ids[rev], "files": {"rules/ready-rule.md": "Say ready.\n"}, "entries": []}


SCENARIO = {"scenario": "ready", "recipe": "ready", "surface": "harness", "release_id": R1}
CONTRACT = {
    "scenario": "ready",
    "recipe": "ready",
    "processor": "harness_evolve",
    "surface": "harness",
    "training_mode": "hybrid",
    "required_request_types": ["inference", "report"],
}


def routes() -> dict[str, Any]:
    """A fresh copy of everything the fake daemon answers."""
    moved = {"scenario": "ready", "release_id": C2, "content_id": T1}
    story = {**RECORD, "reports": [REPORT], "verdicts": [{**PAIR, "report": "rep-1"}], "step": None}
    waiting = (None, "eligible")
    return {
        "GET /reef/status": STATUS,
        "GET /reef/scenarios": {"scenarios": [SCENARIO]},
        "POST /reef/scenarios": (201, {"scenario": "new", "release_id": R0, "content_id": T0}),
        "DELETE /reef/scenarios/ready": {"scenario": "ready", "archived": ["ready"]},
        "GET /reef/scenarios/ready/contract": CONTRACT,
        "GET /reef/scenarios/ready/releases": lambda asked: {"releases": [dict(each) for each in RELEASES]},
        "GET /reef/scenarios/ready/diff": lambda asked: DIFF,
        "POST /reef/scenarios/ready/rollback": moved,
        "POST /reef/scenarios/ready/promote": moved,
        "POST /reef/scenarios/ready/reject": moved,
        "GET /reef/harness": harness,
        "GET /reef/records": {"records": [RECORD], "next_after_sequence": 1},
        "GET /reef/scenarios/ready/records": {"records": [RECORD], "next_after_sequence": 1},
        f"GET /reef/records/{RECEIPT}": story,
        "POST /reef/train": {"agent_record_id": "ask-1", "scenario": "ready", "request_type": "train"},
        "POST /reef/report": {"agent_record_id": "rep-1", "scenario": "ready", "request_type": "report"},
        "GET /reef/reports": lambda asked: {
            "reports": [REPORT] if asked.query.get("state") in waiting else []
        },
        "GET /reef/steps": {"steps": [STEP]},
        "GET /reef/steps/ready/1": {**STEP, "batch": BATCH, "episodes": [EPISODE]},
    }
