"""Keeps a service busy with long prompts, so that its queue is never empty.

    python3 busy.py URL KEY [PROMPTS]

Keeps PROMPTS (24) streamed chat completions in flight, each with a prompt of its own of half the service's context, at most
1,500 words, until SIGTERM. Then it prints how many were answered. The exit code is 1 if one was refused or lost."""

import http.client
import json
import signal
import sys
import threading
import urllib.parse


def main():
    url, key, prompts = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or [24])[0])
    answered, lost, stopped = [], [], threading.Event()

    def ask(method, path, body=None):
        service = http.client.HTTPConnection(url.hostname, url.port, timeout=600)
        service.request(method, path, body and json.dumps(body), {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
        return service.getresponse()

    context = json.load(ask("GET", "/v1/models"))["data"][0]["max_model_len"]
    words = min(1500, context // 8)

    def keep(client):
        turn = 0
        while not stopped.is_set():
            turn += 1
            text = f"{client} {turn} " + " ".join(f"word{i}" for i in range(words))
            try:
                answer = ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "stream": True})
                data = answer.read().decode()
                ended = answer.status == 200 and data.rstrip().endswith("data: [DONE]")
                (answered if ended else lost).append(f"status {answer.status}: {data[-300:]}")
            except (OSError, http.client.HTTPException) as error:
                lost.append(repr(error))

    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    clients = [threading.Thread(target=keep, args=(i,)) for i in range(prompts)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    print(f"beside them: {len(answered)} of {len(answered) + len(lost)} requests with prompts of about {words} words were answered")
    for reason in sorted(set(lost))[:5]:
        print(f"FAIL  {reason}")
    sys.exit(1 if lost else 0)


main()
