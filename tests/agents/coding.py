"""How each coding agent is pointed at a daemon and run without a person, as its own documents say."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reef.runtime import Dialect
from tests.agents.install import installed, node
from tests.agents.play import TASK, Place, Said
from tests.stub_provider import ToolCall

RUN_S = 90
_KEPT = ("LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE")


@dataclass(frozen=True)
class Agent:
    """One agent. `name` is its row of the table, `package` what it is installed as."""

    name: str
    package: str
    dialect: Dialect
    session: bool = True
    """Whether it says in a header which session a request belongs to."""

    @property
    def titles(self) -> bool:
        """Whether it asks for a title beside its first turn."""
        return False

    def fetch(self) -> None:
        """Install it.

        Raises:
            Missing: it cannot be had here.
        """
        node()
        installed(self.package)

    def run(self, place: Place) -> Said:
        """Run it on the task, in a home of its own."""
        home = place.folder / "home"
        work = place.folder / "work"
        for folder in (home, work):
            folder.mkdir(parents=True, exist_ok=True)
        command, environ = self._command(place, home)
        return run(command, work, home, {"REEF_KEY": place.token} | environ)

    def write(self, path: str, text: str, call: str) -> ToolCall:
        """The call by which its model writes a file."""
        raise NotImplementedError

    def _command(self, place: Place, home: Path) -> tuple[list[str], dict[str, str]]:
        raise NotImplementedError

    def _bin(self, path: str) -> str:
        return str(installed(self.package) / "node_modules" / path)


@dataclass(frozen=True)
class Pi(Agent):
    api: str = "openai-completions"

    def write(self, path: str, text: str, call: str) -> ToolCall:
        return ToolCall("write", {"path": path, "content": text}, call)

    def _command(self, place: Place, home: Path) -> tuple[list[str], dict[str, str]]:
        base = place.root if self.api == "anthropic-messages" else place.v1
        model = {"id": place.model, "contextWindow": 32768, "maxTokens": 4096}
        provider = {"baseUrl": base, "api": self.api, "apiKey": "$REEF_KEY", "models": [model]}
        settings = {"retry": {"baseDelayMs": 200}, "compaction": {"keepRecentTokens": 1}}
        (home / "models.json").write_text(json.dumps({"providers": {"reef": provider}}))
        (home / "settings.json").write_text(json.dumps(settings))
        environ = {"PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1"}
        command = [self._bin(".bin/pi"), "--provider", "reef", "--model", place.model, "-p", TASK]
        return command, environ


@dataclass(frozen=True)
class ClaudeCode(Agent):
    def write(self, path: str, text: str, call: str) -> ToolCall:
        return ToolCall("Write", {"file_path": path, "content": text}, call)

    def _command(self, place: Place, home: Path) -> tuple[list[str], dict[str, str]]:
        command = [self._bin("@anthropic-ai/claude-code-linux-x64/claude"), "-p", TASK]
        command += ["--output-format", "stream-json", "--verbose", "--session-id", place.session]
        return [*command, "--dangerously-skip-permissions"], {
            "ANTHROPIC_BASE_URL": place.root,
            "ANTHROPIC_API_KEY": place.token,
            "ANTHROPIC_MODEL": place.model,
            "CLAUDE_CONFIG_DIR": str(home),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }


@dataclass(frozen=True)
class Codex(Agent):
    def write(self, path: str, text: str, call: str) -> ToolCall:
        return ToolCall("exec_command", {"cmd": f"printf '%s' '{text}' > '{path}'"}, call)

    def _command(self, place: Place, home: Path) -> tuple[list[str], dict[str, str]]:
        provider = {"name": "reef", "base_url": place.v1, "env_key": "REEF_KEY", "wire_api": "responses"}
        lines = ["model_auto_compact_token_limit = 20000"]
        lines += [f'model = "{place.model}"', 'model_provider = "reef"', 'approval_policy = "never"']
        lines += ['sandbox_mode = "danger-full-access"', "[model_providers.reef]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in provider.items()]
        (home / "config.toml").write_text("\n".join(lines) + "\n")
        command = [self._bin(".bin/codex"), "exec", "--skip-git-repo-check", "--json", TASK]
        return command, {"CODEX_HOME": str(home)}


@dataclass(frozen=True)
class OpenCode(Agent):
    @property
    def titles(self) -> bool:
        return True

    def write(self, path: str, text: str, call: str) -> ToolCall:
        return ToolCall("write", {"filePath": path, "content": text}, call)

    def _command(self, place: Place, home: Path) -> tuple[list[str], dict[str, str]]:
        model = {"limit": {"context": 32768, "output": 4096}}
        options = {"baseURL": place.v1, "apiKey": "{env:REEF_KEY}"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {place.model: model}}
        name = f"reef/{place.model}"
        settings = {"model": name, "small_model": name, "share": "disabled", "autoupdate": False}
        settings |= {"permission": "allow", "provider": {"reef": provider}}
        file = home / "opencode.json"
        file.write_text(json.dumps(settings))
        environ = {"OPENCODE_CONFIG": str(file), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        return [
            self._bin("opencode-linux-x64-baseline/bin/opencode"),
            "run",
            "--format",
            "json",
            TASK,
        ], environ


AGENTS = [
    *(
        Pi(f"{version} {dialect}", version, dialect, dialect == "responses", api)
        for version in ("pi-1.6.0", "pi-0.84.2")
        for dialect, api in (
            ("chat", "openai-completions"),
            ("messages", "anthropic-messages"),
            ("responses", "openai-responses"),
        )
    ),
    ClaudeCode("claude-code", "claude-code", "messages"),
    Codex("codex", "codex", "responses"),
    OpenCode("opencode", "opencode", "chat"),
]


def run(command: list[str], work: Path, home: Path, environ: dict[str, str]) -> Said:
    """Run a program of Node's in `work`, without a terminal or a proxy; past the time limit it is ended."""
    kept = {key: os.environ[key] for key in _KEPT if key in os.environ}
    path = f"{node()}:/usr/local/bin:/usr/bin:/bin"
    process = subprocess.Popen(
        command,
        cwd=work,
        env=kept | {"PATH": path, "HOME": str(home), "NO_PROXY": "127.0.0.1"} | environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=RUN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return Said(False, f"{said}\nit ran past {RUN_S} s")
    return Said(process.returncode == 0, said)
