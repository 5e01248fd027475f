"""Finding the records that a client means: by id, run, session or any name the provider gave them."""

from collections.abc import Iterable

from sqlalchemy import Connection, RowMapping, select

from daemon.records.book import RecordBook
from daemon.scrub import masked_name
from daemon.store.schema import aliases, records
from reef.errors import Invalid


def resolve(connection: Connection, book: RecordBook, scenario: str, names: Iterable[str]) -> list[str]:
    """Receipts behind `names`, in order. A receipt whose exchange still runs counts.

    Raises:
        Invalid: naming the first that is unknown, foreign, ambiguous, twice there or no inference.
    """
    found: list[str] = []
    for name in names:
        for receipt in _resolve_one(connection, book, scenario, name):
            if receipt in found:
                raise Invalid(f"reference `{name}` is there twice", hint="name each receipt once")
            found.append(receipt)
    return found


def scenario_of(connection: Connection, book: RecordBook, name: str) -> str | None:
    """The scenario that a reference belongs to, if there is exactly one."""
    if running := book.running_in(name):
        return running
    if owner := connection.execute(select(records.c.scenario).where(records.c.id == name)).scalar():
        return str(owner)
    kind, _, value = name.partition(":")
    if kind in ("run", "session") and value:
        query = select(records.c.scenario).where(records.c[kind] == masked_name(value)).distinct()
    else:
        query = select(aliases.c.scenario).where(aliases.c.alias == name).distinct()
    owners = connection.execute(query.limit(2)).scalars().all()
    return owners[0] if len(owners) == 1 else None


def by_any_name(connection: Connection, name: str, scenario: str | None) -> str:
    """The id of the one record that `name` means: its id, or a name the provider gave it.

    A name that means nothing comes back as it is. Raises `Invalid` when it means several.
    """
    if connection.execute(select(records.c.id).where(records.c.id == name)).scalar() is not None:
        return name
    query = select(aliases.c.record_id).where(aliases.c.alias == name)
    if scenario is not None:
        query = query.where(aliases.c.scenario == scenario)
    matches = connection.execute(query).scalars().all()
    if len(matches) > 1:
        raise Invalid(f"`{name}` names {len(matches)} records", hint="use a receipt")
    return matches[0] if matches else name


def _resolve_one(connection: Connection, book: RecordBook, scenario: str, name: str) -> list[str]:
    if (running := book.running_in(name)) is not None:
        _own(name, running, scenario)
        book.awaited.add(name)
        return [name]
    row = connection.execute(select(records).where(records.c.id == name)).mappings().first()
    if row is not None:
        _own(name, row["scenario"], scenario)
        return [_inference(name, row)]
    kind, _, value = name.partition(":")
    if kind in ("run", "session") and value:
        return _turns(connection, scenario, kind, value)
    query = select(aliases.c.record_id).where(aliases.c.scenario == scenario, aliases.c.alias == name)
    matches = connection.execute(query).scalars().all()
    if len(matches) > 1:
        raise Invalid(f"reference `{name}` names {len(matches)} records", hint="use a receipt")
    if not matches:
        raise Invalid(
            f"reference `{name}` is not a record of scenario `{scenario}`",
            hint="use the x-reef-agent-record-id of a response; see `reef records`",
        )
    return list(matches)


def _own(name: str, owner: str, scenario: str) -> str:
    if owner != scenario:
        raise Invalid(
            f"reference `{name}` belongs to scenario `{owner}`, not `{scenario}`",
            hint=f"report it with x-reef-scenario: {owner}",
        )
    return name


def _inference(name: str, row: RowMapping) -> str:
    if row["request_type"] != "inference":
        raise Invalid(
            f"reference `{name}` is a {row['request_type']}, not an inference", hint="use a receipt"
        )
    return str(row["id"])


def _turns(connection: Connection, scenario: str, kind: str, value: str) -> list[str]:
    query = (
        select(records.c.id)
        .where(
            records.c.scenario == scenario,
            records.c[kind] == masked_name(value),
            records.c.kind == "turn",
            records.c.status == "complete",
            records.c.superseded_by.is_(None),
        )
        .order_by(records.c.sequence)
    )
    if found := list(connection.execute(query).scalars()):
        return found
    raise Invalid(
        f"reference `{kind}:{value}` names no finished turn of scenario `{scenario}`",
        hint="see `reef records`",
    )
