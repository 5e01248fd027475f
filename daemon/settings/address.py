"""The address of an upstream: what `base_url` may be."""

from urllib.parse import SplitResult

from daemon.scrub import is_key
from reef._url import EXAMPLE, http_address
from reef.errors import Invalid

ENDPOINTS = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/messages/count_tokens",
    "/embeddings",
    "/v1/models",
)
"""What is asked for below a base, and is no part of one."""


def base_address(base_url: str) -> SplitResult:
    """The parts of a `base_url`.

    Raises:
        Invalid: it is no http(s) address, goes on after the base, or holds what is no part of an address.
    """
    text = base_url.strip()
    if "://" not in text and is_key(text):
        raise Invalid("the address of an upstream looks like a key", hint=EXAMPLE)
    parts = http_address(text)
    path = base = parts.path.rstrip("/")
    while ending := next((ending for ending in ENDPOINTS if base.endswith(ending)), None):
        base = base.removesuffix(ending).rstrip("/")
    right = f"{parts.scheme}://{parts.netloc}{base or '/v1'}"
    if base != path:
        raise Invalid(
            f"`{parts.scheme}://{parts.netloc}{path}` is where one kind of request goes, not the base of all",
            hint=f"the base_url is {right}",
        )
    if parts.query or parts.fragment:
        raise Invalid(
            f"the address of `{parts.hostname}` goes on after its path, and that would not be sent",
            hint=f"the base_url is {right}",
        )
    return parts
