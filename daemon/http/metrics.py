"""/metrics: Prometheus text. Counters of records and tokens begin anew with each start of the daemon."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, func, select
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from daemon.growth.budget import spent_today
from daemon.http.rooms import Rooms, rooms
from daemon.records.batches import counts
from daemon.store.schema import episodes, steps
from reef import __version__

Sample = tuple[Sequence[str], float]
STATES = ("ready", "loading", "down")


def family(name: str, kind: str, told: str, labels: Sequence[str], samples: Iterable[Sample]) -> str:
    """One metric in the text format; nothing where it has no samples. Label values may hold anything."""
    lines = [
        f"{name}{_labels(labels, values)} {int(value) if value == int(value) else value!r}"
        for values, value in samples
    ]
    return "\n".join((f"# HELP {name} {told}", f"# TYPE {name} {kind}", *lines, "")) if lines else ""


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}" if names else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


async def metrics(request: Request) -> Response:
    here = rooms(request)
    told = [*_serving(here), *await here.store.read(lambda connection: _learning(connection, here))]
    return Response("".join(told), media_type="text/plain; version=0.0.4")


def _serving(here: Rooms) -> list[str]:
    tally, states, writer = here.book.tally, here.router.states(), here.store.writer
    return [
        family("reef_info", "gauge", "The version that runs.", ("version",), [((__version__,), 1)]),
        family(
            "reef_records_total",
            "counter",
            "Exchanges recorded.",
            ("scenario", "kind", "status"),
            sorted(tally.records.items()),
        ),
        family(
            "reef_tokens_total",
            "counter",
            "Tokens, each once: input without what came from the cache, cached, output.",
            ("scenario", "upstream", "direction"),
            sorted(tally.tokens.items()),
        ),
        family(
            "reef_cost_usd_total",
            "counter",
            "What exchanges cost, where a price is configured.",
            ("scenario", "upstream"),
            sorted(tally.usd.items()),
        ),
        family(
            "reef_upstream_state",
            "gauge",
            "1 for the state that an upstream is in; an unloaded local model is ready, and loads when asked.",
            ("upstream", "kind", "state"),
            [((up.name, up.kind, state), up.state == state) for up in states for state in STATES],
        ),
        family(
            "reef_upstream_waiting",
            "gauge",
            "Requests that wait for their turn.",
            ("upstream",),
            [((up.name,), up.waiting) for up in states],
        ),
        family(
            "reef_store_bytes",
            "gauge",
            "How large the database is.",
            (),
            [((), size)] if (size := here.store.size_bytes()) is not None else [],
        ),
        family(
            "reef_store_writable",
            "gauge",
            "Whether writes went well of late.",
            (),
            [((), here.store.gate.trouble is None)],
        ),
        family("reef_store_waiting", "gauge", "Writes that wait for a commit.", (), [((), writer.waiting)]),
    ]


def _learning(connection: Connection, here: Rooms) -> list[str]:
    by_step = select(steps.c.scenario, steps.c.outcome, func.count()).where(steps.c.outcome.is_not(None))
    by_episode = select(episodes.c.scenario, episodes.c.side, episodes.c.status, func.count()).where(
        episodes.c.reused.is_(False)
    )
    running = select(steps.c.scenario, steps.c.state, func.count()).where(steps.c.state != "done")
    return [
        family(
            "reef_reports",
            "gauge",
            "Reports by state.",
            ("scenario", "state"),
            [
                ((name, state), count)
                for name in here.scenarios.names()
                for state, count in counts(connection, name).items()
                if state != "records"
            ],
        ),
        family(
            "reef_steps",
            "gauge",
            "Steps that ended, by outcome; one that is run again has none.",
            ("scenario", "outcome"),
            _grouped(connection, by_step.group_by(steps.c.scenario, steps.c.outcome)),
        ),
        family(
            "reef_steps_open",
            "gauge",
            "Steps under way or waiting.",
            ("scenario", "state"),
            _grouped(connection, running.group_by(steps.c.scenario, steps.c.state)),
        ),
        family(
            "reef_episodes",
            "gauge",
            "Episodes that the gate has; those of a step that starts over are gone.",
            ("scenario", "side", "status"),
            _grouped(
                connection,
                by_episode.group_by(episodes.c.scenario, episodes.c.side, episodes.c.status),
            ),
        ),
        family(
            "reef_growth_usd_today",
            "gauge",
            "What growth spent today (UTC).",
            (),
            [((), spent_today(connection))],
        ),
    ]


def _grouped(connection: Connection, query: Select[Any]) -> list[Sample]:
    rows = connection.execute(query).all()
    return [(tuple(str(value) for value in row[:-1]), row[-1]) for row in sorted(rows)]


routes = [Route("/metrics", metrics)]
