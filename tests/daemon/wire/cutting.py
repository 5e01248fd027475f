"""Cuts bytes at random places."""

from hypothesis import strategies as st


def chunked(body: bytes) -> st.SearchStrategy[list[bytes]]:
    """All ways to cut a body into chunks: anywhere, beside line ends, or into small pieces of one size."""
    ends = [at for at, byte in enumerate(body) if byte == 10] or [0]
    place = st.integers(0, len(body)) | st.sampled_from(ends) | st.sampled_from(ends).map(lambda at: at + 1)
    places = st.lists(place, max_size=12).map(sorted)
    cut = places.map(lambda cuts: [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)])
    return cut | st.sampled_from([1, 7, 50]).map(
        lambda n: [body[at : at + n] for at in range(0, len(body), n)]
    )
