"""A proxy on loopback that forces a model's answers.

It forwards requests for chat to a service, with a regular expression or a schema that the whole answer must match: the
answer is then the same for any decoder. All other requests pass unchanged. Programs that take it for their HTTP proxy can
reach nothing else: it refuses every connection to another host and keeps its name.

    python3 force.py URL KEY

prints the proxy's URL and forwards to the service at URL, with the answers that the suites of frameworks expect."""

import http.client
import http.server
import json
import sys
import threading
import urllib.parse

CHATS = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat")


def literal(text):
    """A regular expression that matches the text."""
    return "".join("\\" + c if c in r"\.^$*+?()[]{}|" else c for c in text)


def results(body):
    """The results of tools in a conversation, oldest first."""
    found = []
    for item in body.get("messages") or body.get("input") or []:
        if not isinstance(item, dict):
            continue
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            found.append(item.get("output"))
        elif item.get("role") == "tool":
            found.append(item.get("content"))
        elif isinstance(item.get("content"), list):
            found += [b.get("content") for b in item["content"] if isinstance(b, dict) and b.get("type") == "tool_result"]
    return [r if isinstance(r, str) else json.dumps(r) for r in found]


class Proxy:
    """Forwards requests to the service at url. force changes the body of a request for chat."""

    def __init__(self, url, key, force):
        self.target, self.key, self.force = urllib.parse.urlsplit(url), key, force
        self.requests, self.refused = [], []  # (path, body, status), hosts
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"proxy": self}))
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    proxy = None

    def log_message(self, *_):
        pass

    def do_CONNECT(self):
        self.proxy.refused.append(self.path)
        self.send_error(403, "this test has no network")

    def forward(self):
        path = self.path.removeprefix(self.proxy.url)
        if not path.startswith("/"):
            self.proxy.refused.append(path)
            return self.send_error(403, "this test has no network")
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = None
        if self.command == "POST" and path.partition("?")[0] in CHATS:
            body = json.loads(data)
            data = json.dumps(self.proxy.force(path.partition("?")[0], body)).encode()
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length", "connection", "accept-encoding", "authorization", "x-api-key")}
        headers["Authorization"] = "Bearer " + self.proxy.key
        service = http.client.HTTPConnection(self.proxy.target.hostname, self.proxy.target.port, timeout=300)
        service.request(self.command, path, data or None, headers)
        answer = service.getresponse()
        self.proxy.requests.append((self.command + " " + path, body, answer.status))
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while self.command != "HEAD" and (part := answer.read1(1 << 16)):
                self.wfile.write(part)
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has what it wanted
        service.close()

    do_GET = do_POST = do_HEAD = do_DELETE = forward


CALL = {"name": "get_weather", "parameters": {"city": "Paris"}}  # in the form of chat.jinja
TEXT = "It is sunny."


def scripted(path, body):
    """Forces a call of get_weather where it is among the tools and has no result yet, and TEXT where the request asks for
    nothing more special."""
    chosen = body.get("tool_choice") not in (None, "auto", "none", {"type": "auto"}, {"type": "none"})
    text = body.get("text")
    if chosen or body.get("response_format") or body.get("output_config", {}).get("format") or body.get("output_format") or body.get("format") or (isinstance(text, dict) and text.get("format", {}).get("type", "text") != "text"):
        return body
    calls = "get_weather" in json.dumps(body.get("tools") or []) and not results(body) and body.get("tool_choice") not in ("none", {"type": "none"})
    if path == "/api/chat":
        return {**body, "format": {"const": CALL if calls else TEXT}}
    return {**body, "guided_regex": literal(json.dumps(CALL) if calls else TEXT)}


if __name__ == "__main__":
    with Proxy(sys.argv[1], sys.argv[2], scripted) as forcing:
        print(forcing.url, flush=True)
        threading.Event().wait()
