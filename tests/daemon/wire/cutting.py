"""Cuts bytes at random places."""

from hypothesis import strategies as st


def chunked(body: bytes) -> st.SearchStrategy[list[bytes]]:
    """All ways to cut a body into chunks."""
    places = st.lists(st.integers(0, len(body)), max_size=12).map(sorted)
    return places.map(lambda cuts: [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)])
