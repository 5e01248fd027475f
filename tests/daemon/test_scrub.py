"""Credential-shaped literals are masked, JSON stays JSON, and nothing else changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.scrub import MASK, SHAPES, find_credential, mask, masked_name

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + "A" * 60 + "\n-----END RSA PRIVATE KEY-----"
SECRETS = [
    "sk-proj-abcDEF0123456789abcdef",
    "sk-ant-api03-" + "x9" * 20,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1" * 20,
    "glpat-" + "a1" * 10,
    "xoxb-1234567890-abcdefghij",
    "hf_" + "aB" * 17,
    "npm_" + "aB3" * 12,
    "AKIA" + "ABCD" * 4,
    "AIza" + "x" * 35,
    "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4",
    KEY,
    "sk_live_" + "a1" * 12,
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_and_json_stays_json(secret: str) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": f'my "key" is {secret}, keep it'}]}).encode()
    masked, count = mask(body)
    assert count == 1
    content = json.loads(masked)["messages"][0]["content"]
    assert content == f'my "key" is {MASK.decode()}, keep it'
    assert mask(masked) == (masked, 0)
    assert find_credential(secret)


@pytest.mark.parametrize(
    "before",
    [
        "Authorization: Bearer ",
        'api_key = "',
        "API-KEY: ",
        "password=",
        'client_secret": "',
        "access_token = '",
    ],
)
def test_the_word_before_a_secret_stays_readable(before: str) -> None:
    secret = "abcd1234" * 4
    body = json.dumps({"content": f"x {before}{secret}"}).encode()
    masked, count = mask(body)
    assert count == 1
    assert json.loads(masked)["content"] == f"x {before}{MASK.decode()}"


@pytest.mark.parametrize(
    "text",
    [
        "task-list-of-many-things-2024-and-more",
        "api_key = os.environ['X']",
        "max_tokens: 1234567890123456",
        "password: see the wiki page",
        "bearer of bad news",
        "key-----",
        "risk-averse-and-very-long-word-1",
        "api_key=YOUR_API_KEY_GOES_HERE",
        "-----BEGIN PUBLIC KEY-----",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert mask(text.encode()) == (text.encode(), 0)
    assert find_credential(text) is None


def test_a_key_without_its_end() -> None:
    masked, count = mask(json.dumps({"a": KEY[:90], "b": 1}).encode())
    assert count == 1
    assert json.loads(masked) == {"a": MASK.decode(), "b": 1}


@given(
    st.recursive(st.text(max_size=40) | st.sampled_from(SECRETS), lambda inner: st.lists(inner, max_size=4))
)
def test_any_json_stays_json(value: object) -> None:
    json.loads(mask(json.dumps(value).encode())[0])


PARTS = [*SECRETS, "Bearer ", "API-key: ", "Password=", "client_SECRET = '", "authToken:", "a1" * 20, "sk-"]
PARTS += [
    "ghp_",
    "-----",
    "PRIVATE KEY-----",
    "_",
    "-",
    "A",
    "eyJ",
    "xox",
    "AIza",
    "key",
    " ",
    ".",
    "\n",
    "hf",
]


@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=12).map("".join))
def test_no_shape_is_overlooked(text: str) -> None:
    data = text.encode()
    for shape in SHAPES:
        if shape.expression.search(data):
            assert find_credential(text)
            assert mask(data)[1] > 0


@pytest.mark.parametrize("secret", SECRETS)
def test_a_name_with_a_credential_in_it_is_told_from_others(secret: str) -> None:
    names = [masked_name(f"{secret}{end}") for end in (" a", " b")]
    assert [MASK.decode() in name and secret not in name for name in names] == [True, True]
    assert len(set(names)) == 2
    assert names[0] == masked_name(f"{secret} a")
    assert masked_name("build-42") == "build-42"
