"""On which line a key of a configuration file stands.

A key is named by its path: `("recipe", "ready", "gate", "alpha")`, with an index where the file has a
list: `("upstream", 0, "base_url")`. TOML gets a small scanner over text that `tomllib` has already
accepted (it keeps no positions); YAML nodes carry their marks.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

import yaml

KeyPath = tuple[str | int, ...]
Lines = dict[KeyPath, int]


def toml_lines(text: str) -> Lines:
    """The line (from 1) of each table header and each key outside inline tables.

    `text` must be valid TOML.
    """
    lines: Lines = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for start, statement_end in _statements(text):
        line = text.count("\n", 0, start) + 1
        if text.startswith("[[", start):
            table = _table(_segments(text[start + 2 : _find(text, start + 2, "]")]), counts, array=True)
            _note(lines, table, line)
        elif text[start] == "[":
            table = _table(_segments(text[start + 1 : _find(text, start + 1, "]")]), counts, array=False)
            _note(lines, table, line)
        else:
            key = _segments(text[start : _find(text, start, "=", statement_end)])
            _note(lines, (*table, *key), line)
    return lines


def yaml_document(text: str) -> tuple[Any, Lines]:
    """The document's data and the line of each key and list item.

    Raises:
        yaml.YAMLError: it is not YAML, or a mapping names a key twice.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        lines: Lines = {}
        if node is not None:
            _walk(node, (), lines)
        return (loader.construct_document(node) if node is not None else None), lines
    finally:
        loader.dispose()


def _note(lines: Lines, path: KeyPath, line: int) -> None:
    """`path` stands on `line`, and so does what encloses it unless it was seen before."""
    for length in range(1, len(path)):
        lines.setdefault(path[:length], line)
    lines[path] = line


def _walk(node: yaml.Node, path: KeyPath, lines: Lines) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            if here in lines:
                raise yaml.MarkedYAMLError(
                    problem=f"`{key.value}` is given twice", problem_mark=key.start_mark
                )
            lines[here] = key.start_mark.line + 1
            _walk(value, here, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*path, index)] = item.start_mark.line + 1
            _walk(item, (*path, index), lines)


def _table(segments: list[str], counts: dict[KeyPath, int], *, array: bool) -> KeyPath:
    """The path of a table header; the names of arrays of tables are followed by their running index."""
    path: KeyPath = ()
    for position, segment in enumerate(segments, 1):
        path = (*path, segment)
        if array and position == len(segments):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _segments(key: str) -> list[str]:
    """A dotted key as its parts, quoting undone."""
    parts: list[str] = []
    inner: Any = tomllib.loads(f"{key.strip()} = 0")
    while isinstance(inner, dict):
        [(part, inner)] = inner.items()
        parts.append(part)
    return parts


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each header and each `key = value`, comments and blank lines left out."""
    at = 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif text[at] == "#":
            at = _line_end(text, at)
        else:
            end = _line_end(text, at) if text[at] == "[" else _value_end(text, at)
            yield at, end
            at = end


def _value_end(text: str, at: int) -> int:
    """The end of the statement that starts at `at`: the first newline outside strings and brackets."""
    depth = 0
    while at < len(text):
        character = text[at]
        if character in "\"'":
            at = _string_end(text, at)
            continue
        if character == "#":
            at = _line_end(text, at)
            continue
        if character == "\n" and depth == 0:
            return at
        depth += (character in "[{") - (character in "]}")
        at += 1
    return at


def _find(text: str, at: int, wanted: str, end: int | None = None) -> int:
    """Where `wanted` next stands outside a quoted key."""
    stop = len(text) if end is None else end
    while at < stop and text[at] != wanted:
        at = _string_end(text, at) if text[at] in "\"'" else at + 1
    return at


def _string_end(text: str, at: int) -> int:
    quote = text[at]
    mark = quote * 3 if text.startswith(quote * 3, at) else quote
    at += len(mark)
    while at < len(text) and not text.startswith(mark, at):
        at += 2 if quote == '"' and text[at] == "\\" else 1
    at += len(mark)
    while len(mark) == 3 and at < len(text) and text[at] == quote:
        at += 1  # a multi-line string may end in one or two quotes of its own
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
