"""Headers that a connection names for itself go no further."""

from daemon.wire.headers import for_client, for_upstream

SAID = [
    ("connection", "keep-alive, X-Hop"),
    ("connection", "close , x-other"),
    ("x-hop", "1"),
    ("x-other", "2"),
    ("x-end", "3"),
]


def test_what_the_connection_header_names_is_for_the_next_server_only() -> None:
    assert for_client(SAID) == [("x-end", "3")]
    assert for_upstream(SAID) == [("x-end", "3")]


def test_a_connection_that_names_nothing_keeps_the_rest() -> None:
    kept = [("content-type", "application/json"), ("x-hop", "1")]
    assert for_client([*kept, ("connection", "keep-alive")]) == kept
    assert for_client(kept) == kept


def test_credentials_pass_only_where_they_are_meant_to() -> None:
    shown = [("authorization", "Bearer k"), ("x-api-key", "k"), ("cookie", "c"), ("accept", "*/*")]
    assert for_upstream(shown) == [("accept", "*/*")]
    assert for_upstream(shown, credentials=True) == [shown[0], shown[1], shown[3]]
