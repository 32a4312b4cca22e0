"""Two coding agents, unmodified, against a served model: Codex on the Responses API and Claude Code on the Messages API.

    python3 agents.py URL KEY MODEL BIN

BIN is the folder with the programs codex and claude. A proxy forces the model's answers: a call of a tool that writes a file,
a call of one that reads it, and a closing text. So the agents run their own tools on what the service streams, and send
the results back. Each agent has a home and a work folder of its own, and reaches nothing but the service.

Prints one line for each agent, and exits 1 if one failed."""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

from force import Proxy, literal, results

CONTENT = "a greeting from the model"
CLOSING = "The file has a greeting."
PROMPT = "Write a greeting to greeting.txt, then read the file."
SIDE = "A greeting"  # the answer to requests without tools, such as for a title


def forced(calls):
    """Returns a function that forces the call of each turn, and then the closing text."""
    def force(_, body):
        answer = SIDE
        if body.get("tools"):
            turn = len(results(body))
            answer = f"<think>\nTurn {turn}.\n</think>\n\n"
            if turn < len(calls):
                name, arguments = calls[turn]
                answer += f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'
            else:
                answer += CLOSING
        return {**body, "guided_regex": literal(answer)}

    return force


class Agent:
    def __init__(self, home, work, model):
        self.home, self.work, self.model = home, work, model
        self.file = work / "greeting.txt"


class Codex(Agent):
    name, path = "codex", "/v1/responses"

    def calls(self):
        return [("exec_command", {"cmd": f"printf '{CONTENT}' > greeting.txt"}), ("exec_command", {"cmd": "cat greeting.txt"})]

    def command(self, url):
        settings = self.home / ".codex"
        settings.mkdir()
        (settings / "config.toml").write_text(f"""
model = "{self.model}"
model_provider = "service"
model_context_window = 32768
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"

[analytics]
enabled = false

[features]
apps = false
plugins = false
plugin_sharing = false
remote_plugin = false

[model_providers.service]
name = "service"
base_url = "{url}/v1"
env_key = "SERVICE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
""")
        return ["codex", "exec", "--skip-git-repo-check", "--output-last-message", str(self.home / "last"), PROMPT], {"SERVICE_KEY": "dummy"}

    def said(self, _):
        return (self.home / "last").read_text()


class ClaudeCode(Agent):
    name, path = "claude", "/v1/messages"

    def calls(self):
        return [("Write", {"file_path": str(self.file), "content": CONTENT}), ("Bash", {"command": "cat greeting.txt", "description": "Read the file"})]

    def command(self, url):
        words = ["claude", "-p", PROMPT, "--model", self.model, "--output-format", "json", "--allowedTools", "Write", "Bash(cat *)"]
        return words, {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_SMALL_FAST_MODEL": self.model, "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
        }

    def said(self, output):
        return json.loads(output)["result"]


def check(agent, proxy, bin_folder):
    """Runs an agent and checks what it did. Returns the number of input tokens of each turn."""
    (program, *words), settings = agent.command(proxy.url)
    env = {"PATH": f"{bin_folder}:/usr/local/bin:/usr/bin:/bin", "HOME": str(agent.home), "HTTPS_PROXY": proxy.url, "HTTP_PROXY": proxy.url, "NO_PROXY": "127.0.0.1", "TMPDIR": str(agent.home), **settings}
    run = subprocess.run([program, *words], cwd=agent.work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, executable=f"{bin_folder}/{program}")
    bad = [(path, status) for path, _, status in proxy.requests if status >= 400 and not path.startswith("HEAD ")]
    assert run.returncode == 0 and not bad, f"exit {run.returncode}, refused requests {bad}: {(run.stdout + run.stderr)[-2000:]}"
    asked = [body for path, body, _ in proxy.requests if body and body.get("tools") and path.partition("?")[0] == "POST " + agent.path]
    assert [len(results(body)) for body in asked] == [0, 1, 2], f"{len(asked)} requests with {[results(body) for body in asked]}"
    assert agent.file.read_text() == CONTENT, f"the file has {agent.file.read_text()!r}"
    assert CONTENT in results(asked[-1])[-1], f"the tool's result: {results(asked[-1])[-1]!r}"
    assert not proxy.refused, f"it wanted to reach {sorted(set(proxy.refused))}"
    assert agent.said(run.stdout).strip() == CLOSING, f"it ended with {agent.said(run.stdout)!r}"
    return [len(json.dumps(body)) for body in asked]


def main():
    url, key, model, bin_folder = sys.argv[1:]
    failed = 0
    for kind in (Codex, ClaudeCode):
        version = subprocess.run([f"{bin_folder}/{kind.name}", "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            home, work = pathlib.Path(folder) / "home", pathlib.Path(folder) / "work"
            home.mkdir()
            work.mkdir()
            agent, begun = kind(home, work, model), time.time()
            with Proxy(url, key, forced(agent.calls())) as proxy:
                try:
                    sizes = check(agent, proxy, bin_folder)
                    print(f"ok    {version}: {len(proxy.requests)} requests, prompts of {', '.join(f'{n / 1000:.0f}' for n in sizes)} kB, {time.time() - begun:.0f} s", flush=True)
                except Exception as error:  # an agent that breaks has failed, and the other goes on
                    failed += 1
                    print(f"FAIL  {version}: {type(error).__name__}: {error}", flush=True)
    sys.exit(1 if failed else 0)


main()
