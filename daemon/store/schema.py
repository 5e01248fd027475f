"""Every table of the store. The first migration makes exactly these; later ones change them.

Times are RFC 3339 text in UTC with milliseconds, so that they sort; JSON columns are canonical text.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    false,
    text,
)

metadata = MetaData()


def where_there(column: str) -> dict[str, Any]:
    """An index without the rows that have nothing in `column`."""
    condition = text(f"{column} IS NOT NULL")
    return {"sqlite_where": condition, "postgresql_where": condition}


scenarios = Table(
    "scenarios",
    metadata,
    Column("scenario", Text, primary_key=True),
    Column(
        "folded",
        Text,
        nullable=False,
        unique=True,
        doc="lower-case name: two names may not differ in case only",
    ),
    Column("recipe", Text, nullable=False),
    Column("training_mode", Text, nullable=True, doc="set at run time; null: as configured"),
    Column("created_at", Text, nullable=False),
    Column("archived_at", Text, nullable=True),
    Column("next_sequence", Integer, nullable=False, default=1),
    Column("next_step", Integer, nullable=False, default=0),
    Column("start_release_id", Text, nullable=True, doc="the release it was asked to start from"),
    Column("head_release_id", Text, nullable=True),
    Column("head_content_id", Text, nullable=True),
)

records = Table(
    "records",
    metadata,
    Column("id", Text, primary_key=True),
    Column("scenario", Text, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("request_type", Text, nullable=False, doc="inference, report, train"),
    Column("created_at", Text, nullable=False),
    Column("kind", Text, doc="turn, title, compaction, count_tokens, episode"),
    Column("status", Text, doc="complete, aborted, failed"),
    Column("superseded_by", Text, doc="leads to the turn that counts instead, by way of others it may be"),
    Column("run", Text),
    Column("session", Text),
    Column("conversation", Text, doc="names the conversation a release is pinned to"),
    Column("release_id", Text),
    Column("content_id", Text),
    Column("dialect", Text),
    Column("model", Text),
    Column("upstream_name", Text),
    Column("upstream_model", Text),
    Column("upstream_request_id", Text),
    Column("stream", Boolean),
    Column("http_status", Integer),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cached_tokens", Integer),
    Column(
        "billed_tokens", BigInteger, doc="all that was read and written; null: not told, or an older record"
    ),
    Column("cost", Float),
    Column("ttft_ms", Float),
    Column("upstream_ms", Float),
    Column("total_ms", Float),
    Column("dropped", Text, doc="JSON list"),
    Column("error_type", Text),
    Column("error_message", Text),
    Column("metadata", Text, doc="JSON object: tags, scrubbed, imported"),
    Column("digest", LargeBinary, doc="of a client-chosen id's content: the same call may be repeated"),
    Column("request_pieces", LargeBinary, doc="16-byte piece hashes, one after another"),
    Column("forwarded_pieces", LargeBinary, doc="null: what was received was forwarded"),
    Column("response_pieces", LargeBinary),
    Column("message_hash", LargeBinary, doc="of the messages that were asked: a retry has the same"),
    Index("records_by_sequence", "scenario", "sequence", unique=True),
    Index("records_by_time", "created_at", "id"),
    Index("records_by_run", "run", "scenario", "sequence", **where_there("run")),
    Index("records_by_session", "session", "scenario", "sequence", **where_there("session")),
    Index("records_by_conversation", "scenario", "conversation", "sequence", **where_there("conversation")),
    Index(
        "records_by_messages",
        "scenario",
        "message_hash",
        "superseded_by",
        "created_at",
        **where_there("message_hash"),
    ),
)

pieces = Table(
    "pieces",
    metadata,
    Column("hash", LargeBinary, primary_key=True, doc="BLAKE2b, 16 bytes, of the plain bytes"),
    Column("codec", Integer, nullable=False, doc="0 plain, 1 zstd"),
    Column("data", LargeBinary, nullable=False),
)

aliases = Table(
    "aliases",
    metadata,
    Column("alias", Text, nullable=False),
    Column("scenario", Text, nullable=False),
    Column("record_id", Text, nullable=False),
    PrimaryKeyConstraint("alias", "scenario", "record_id"),
    Index("aliases_by_record", "record_id"),
    sqlite_with_rowid=False,
)

reports = Table(
    "reports",
    metadata,
    Column("id", Text, primary_key=True, doc="also a row of records, request_type report"),
    Column("scenario", Text, nullable=False),
    Column("score", Float),
    Column("feedback", Text, doc="JSON string or object"),
    Column("references", Text, nullable=False, doc="JSON list of receipts"),
    Column("preferred", Text),
    Column("over", Text),
    Column("metadata", Text, nullable=False, doc="JSON object"),
    Column("judged", Boolean, nullable=False, default=False, doc="false: its verdicts are still owed"),
    Index("reports_by_scenario", "scenario", "id"),
    Index("reports_unjudged", "judged"),
)

pairs = Table(
    "pairs",
    metadata,
    Column("report", Text, nullable=False),
    Column("receipt", Text, nullable=False, doc="empty: the report named none"),
    Column("recipe", Text, nullable=False),
    Column("scenario", Text, nullable=False),
    Column("state", Text, nullable=False, doc="pending, eligible, ineligible, consumed"),
    Column("reason", Text, nullable=False, default=""),
    Column("message", Text, nullable=False, default=""),
    Column("step", Integer),
    Column("updated_at", Text, nullable=False),
    PrimaryKeyConstraint("report", "receipt", "recipe"),
    Index("pairs_by_state", "scenario", "state"),
    Index("pairs_by_receipt", "receipt"),
    Index("pairs_by_step", "scenario", "step"),
)

steps = Table(
    "steps",
    metadata,
    Column("scenario", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column(
        "state",
        Text,
        nullable=False,
        doc="queued, proposing, evaluating, deciding, committing, waiting, done",
    ),
    Column("waits_for", Text, doc="while waiting: review, money"),
    Column("epoch", Integer, nullable=False, default=0, doc="of the growth lease that wrote it last"),
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text),
    Column("recipe", Text, nullable=False),
    Column("processor", Text, nullable=False),
    Column("continues", Integer, doc="the step whose batch this one carries on"),
    Column("base_release_id", Text),
    Column("base_content_id", Text),
    Column("batch", Text, nullable=False, doc="JSON list of {report, receipts}"),
    Column("proposer", Text),
    Column("mutations", Text, doc="JSON list"),
    Column("reason", Text),
    Column("refused", Text, doc="JSON {rule, message}"),
    Column("candidate_id", Text),
    Column("content_id", Text),
    Column("outcome", Text, doc="select, reject, inconclusive, skip, error"),
    Column("decision", Text, doc="a sentence"),
    Column("release_id", Text),
    Column("pending", Boolean, nullable=False, default=False),
    Column("allowed_usd", Float, doc="what it may spend in all; null: not asked yet, or no price is known"),
    Column(
        "cancel_asked",
        Boolean,
        nullable=False,
        default=False,
        server_default=false(),
        doc="a person wants it to end; whoever runs it does that",
    ),
    Column("metrics", Text, doc="JSON object"),
    Column("error", Text, doc="JSON {message, hint}"),
    Column("notes", Text, doc="JSON list of lines"),
    PrimaryKeyConstraint("scenario", "step"),
    Index("steps_by_state", "state"),
)

intents = Table(
    "intents",
    metadata,
    Column("scenario", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("effect", Text, nullable=False, doc="what is about to happen outside: candidate, release"),
    Column("detail", Text, nullable=False, doc="JSON: all that makes a repeat give the same result"),
    Column("created_at", Text, nullable=False),
    Column("done_at", Text),
    PrimaryKeyConstraint("scenario", "step", "effect"),
    Index("intents_by_end", "scenario", "done_at"),
)

episodes = Table(
    "episodes",
    metadata,
    Column("scenario", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("task", Text, nullable=False),
    Column("side", Text, nullable=False, doc="candidate, current"),
    Column("repeat", Integer, nullable=False),
    Column("split", Text, nullable=False),
    Column("status", Text, nullable=False, doc="ok, retried, error"),
    Column("score", Float),
    Column("why", Text, nullable=False, default=""),
    Column("reused", Boolean, nullable=False, default=False),
    Column("copy_key", LargeBinary, doc="names what it was a run of: tree, task, model, engine"),
    Column("started_at", Text, nullable=False),
    Column("seconds", Float),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cost", Float),
    Column("receipt", Text),
    Column("answer", Text),
    Column("log", Text),
    PrimaryKeyConstraint("scenario", "step", "task", "side", "repeat"),
    Index("episodes_by_copy_key", "copy_key"),
)

releases = Table(
    "releases",
    metadata,
    Column("scenario", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("operation", Text, nullable=False, doc="creation, training, rollback, promote, import"),
    Column("release_id", Text, nullable=False),
    Column("parent_release_id", Text),
    Column("candidate_id", Text),
    Column("content_id", Text, nullable=False),
    Column("checkpoint", Text),
    Column("recorded_at", Text, nullable=False),
    Column("recipe", Text, nullable=False),
    Column("published", Boolean, nullable=False, doc="this row moved the head"),
    Column("pending", Boolean, nullable=False, default=False),
    Column("message", Text, nullable=False, default=""),
    Column("rollback_target_release_id", Text),
    Column("metrics", Text, doc="JSON object"),
    PrimaryKeyConstraint("scenario", "step"),
    Index("releases_by_id", "scenario", "release_id"),
    Index("releases_by_time", "scenario", "recorded_at"),
)

tags = Table(
    "tags",
    metadata,
    Column("scenario", Text, nullable=False),
    Column("tag", Text, nullable=False),
    Column("release_id", Text, nullable=False),
    PrimaryKeyConstraint("scenario", "tag"),
)

leases = Table(
    "leases",
    metadata,
    Column("scenario", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("expires_at", Text, nullable=False),
)

spending = Table(
    "spending",
    metadata,
    Column("day", Text, nullable=False, doc="UTC date"),
    Column("scenario", Text, nullable=False),
    Column("step", Integer, nullable=False, doc="0: of before this was kept by step"),
    Column("usd", Float, nullable=False, default=0.0),
    Column("calls", Integer, nullable=False, default=0),
    Column("input_tokens", Integer, nullable=False, default=0),
    Column("output_tokens", Integer, nullable=False, default=0),
    PrimaryKeyConstraint("scenario", "step", "day"),
    Index("spending_by_day", "day"),
)

holds = Table(
    "holds",
    metadata,
    Column("id", Text, primary_key=True),
    Column("day", Text, nullable=False, doc="UTC date on which it was taken"),
    Column("scenario", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column(
        "epoch",
        Integer,
        nullable=False,
        server_default="0",
        doc="of the growth lease under which it was taken",
    ),
    Column("usd", Float, nullable=False, doc="the most that one call under way can cost"),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
)
