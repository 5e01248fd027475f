"""Changes to a tree: applying them, and refusing them by a named rule."""

from collections.abc import Collection, Mapping, Sequence

from daemon.harness.entries import check_entry
from daemon.harness.files import to_files
from daemon.harness.scan import scan_entry
from reef.errors import Refused
from reef.tree import Entry, EntryKind, HarnessTree, Mutation

MAX_TREE_BYTES = 1024 * 1024


def apply(tree: HarnessTree, mutations: Sequence[Mutation]) -> HarnessTree:
    """The tree with the mutations applied in order; the given tree is not changed.

    A created entry goes to the end; an updated one keeps its place. Both get their stored spelling.

    Raises:
        Refused: rules `create-existing`, `update-missing`, `update-kind`, `remove-missing`,
            `invalid-config`, `empty`, `too-large` or `path`.
    """
    entries = {entry.id: entry for entry in tree.entries}
    for mutation in mutations:
        if mutation.op == "remove":
            _existing(entries, mutation)
            del entries[mutation.id]
        else:
            entries[mutation.id] = _changed(entries, mutation)
    return HarnessTree(tuple(entries.values()), tree.requires)


def check(
    tree: HarnessTree,
    mutations: Sequence[Mutation],
    *,
    kinds_allowed: Collection[EntryKind],
    leak_texts: Sequence[str] = (),
) -> list[Refused]:
    """Every reason why the mutations may not be applied; empty when they may.

    `leak_texts` are whole gate prompts and long expected answers (`daemon.evaluation.tasks.leaks`).
    """
    if not mutations:
        return [Refused("empty", "the proposal changes nothing")]
    found: list[Refused] = []
    grown = tree
    for mutation in mutations:
        try:
            grown = apply(grown, [mutation])
        except Refused as refusal:
            found.append(refusal)
    before = {entry.id: entry for entry in tree.entries}
    changed = [entry for entry in grown.entries if before.get(entry.id) != entry]
    if not found and not changed and len(grown.entries) == len(tree.entries):
        found.append(Refused("empty", "the proposal changes nothing", hint="the tree says this already"))
    for entry in changed:
        if entry.name not in kinds_allowed:
            found.append(
                Refused(
                    "kind-not-rendered",
                    f"entry `{entry.id}` is of kind `{entry.name}`, which this scenario's adapter cannot use",
                    hint=f"it can use: {', '.join(kinds_allowed)}",
                )
            )
        found.extend(scan_entry(entry, leak_texts))
    return found + _check_whole(grown)


def _check_whole(tree: HarnessTree) -> list[Refused]:
    try:
        size = sum(map(len, to_files(tree).values()))
    except Refused as refusal:
        return [refusal]
    if size > MAX_TREE_BYTES:
        return [Refused("too-large", f"the tree would hold {size} bytes, more than {MAX_TREE_BYTES}")]
    return []


def _existing(entries: Mapping[str, Entry], mutation: Mutation) -> Entry:
    entry = entries.get(mutation.id)
    if entry is None:
        there = ", ".join(entries) or "none"
        raise Refused(
            f"{mutation.op}-missing",
            f"there is no entry `{mutation.id[:80]}` to {mutation.op}",
            hint=f"there are: {there}",
        )
    return entry


def _changed(entries: Mapping[str, Entry], mutation: Mutation) -> Entry:
    if mutation.op == "create":
        if mutation.id in entries:
            raise Refused(
                "create-existing", f"there is an entry `{mutation.id}` already", hint="update it instead"
            )
        if mutation.name is None or mutation.config is None:
            raise Refused(
                "invalid-config", f"creating `{mutation.id[:80]}` needs `name` (its kind) and `config`"
            )
        return check_entry(Entry(mutation.id, mutation.name, mutation.config, bool(mutation.disabled)))
    old = _existing(entries, mutation)
    if mutation.name not in (None, old.name):
        raise Refused(
            "update-kind",
            f"`{old.id}` is of kind `{old.name}` and cannot become `{mutation.name}`",
            hint="remove it and create another entry",
        )
    config = old.config if mutation.config is None else mutation.config
    disabled = old.disabled if mutation.disabled is None else mutation.disabled
    return check_entry(Entry(old.id, old.name, config, disabled))
