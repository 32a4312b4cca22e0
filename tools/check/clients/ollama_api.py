"""The official ollama client for Python, unmodified, against Ollama's API. Its requests have no regular expressions, so a
schema forces the answer: also a call, which is JSON in the form of chat.jinja."""

import importlib.metadata

import ollama

from checks import CITY, PERSON, THOUGHT, Person, Suite, main, raised

MESSAGES = [{"role": "user", "content": "Say hello."}]
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": CITY}}
CALL = {"const": {"name": "get_weather", "parameters": {"city": "Paris"}}}
GREEDY = {"temperature": 0, "num_predict": 12}


class Ollama(Suite):
    def __init__(self, options):
        super().__init__(options)
        self.client = ollama.Client(host=self.base, headers={"Authorization": "Bearer " + self.key}, timeout=300)

    def chat(self, **more):
        return self.client.chat(**{"model": self.model, "messages": MESSAGES, "options": GREEDY, **more})

    def generate(self, **more):
        return self.client.generate(**{"model": self.model, "prompt": "Once upon a time", "options": GREEDY, **more})

    def check_chat(self):
        answer = self.chat()
        assert answer.message.role == "assistant" and answer.message.content and answer.done and answer.done_reason in ("stop", "length") and answer.model == self.model
        assert 0 < answer.eval_count <= 12 and answer.prompt_eval_count > 0 and answer.total_duration >= answer.eval_duration > 0
        assert answer.created_at

    def check_chat_stream(self):
        chunks = list(self.chat(stream=True))
        assert "".join(c.message.content for c in chunks) == self.chat().message.content
        assert [c.done for c in chunks] == [False] * (len(chunks) - 1) + [True] and chunks[-1].eval_count == 12

    def check_generate(self):
        for raw in (False, True):
            whole = self.generate(raw=raw)
            assert whole.response and whole.done and whole.eval_count > 0
            assert "".join(c.response for c in self.generate(raw=raw, stream=True)) == whole.response
        assert self.generate(system="You are brief.").prompt_eval_count > self.generate().prompt_eval_count

    def check_options(self):
        greedy = self.chat().message.content
        for options in ({"top_k": 1}, {"top_p": 1e-9}, {"min_p": 1}):
            assert self.chat(options={**options, "num_predict": 12}).message.content == greedy
        once, again = (self.chat(options={"seed": 5, "temperature": 1, "num_predict": 12, "repeat_penalty": 1.1, "mirostat": 0}).message.content for _ in "12")
        assert once == again
        cut = self.chat(options={"num_predict": 2, "temperature": 0})
        assert cut.eval_count == 2 and cut.done_reason == "length"
        stopped = self.chat(options={**GREEDY, "stop": [greedy[4:6]]})
        assert stopped.message.content == greedy[: greedy.index(greedy[4:6])] and stopped.done_reason == "stop"
        self.chat(options=ollama.Options(num_ctx=128, num_thread=2, num_predict=4), keep_alive="5m")

    def check_format(self):
        Person.model_validate_json(self.chat(format=Person.model_json_schema(), options={"num_predict": 200}).message.content, strict=True)
        Person.model_validate_json(self.generate(format=PERSON, options={"num_predict": 200}).response, strict=True)
        assert self.chat(format="json", options={"num_predict": 20}).message.content.lstrip().startswith("{")

    def check_tools(self):
        """A call that the model decides on, its result, and the answer to it."""
        def get_weather(city: str) -> str:
            """The weather of a city.

            Args:
              city: name of the city
            """
            return "sunny in " + city

        for tool in (WEATHER, get_weather):
            first = self.chat(tools=[tool], format=CALL, options={"num_predict": 100})
            call = first.message.tool_calls[0]
            assert call.function.name == "get_weather" and call.function.arguments == {"city": "Paris"} and not first.message.content
            after = [*MESSAGES, first.message, {"role": "tool", "tool_name": "get_weather", "content": get_weather(**call.function.arguments)}]
            last = self.chat(messages=after, tools=[tool], format={"const": "sunny"})
            assert last.message.content == '"sunny"' and not last.message.tool_calls

    def check_tools_stream(self):
        calls = [c for chunk in self.chat(tools=[WEATHER], format=CALL, stream=True, options={"num_predict": 100}) for c in chunk.message.tool_calls or []]
        assert [c.function.arguments for c in calls] == [{"city": "Paris"}]

    def check_think(self):
        forced = {"const": f"{THOUGHT}</think>hello"}
        for think in (True, "high"):
            answer = self.chat(think=think, format=forced, options={"num_predict": 60})
            assert answer.message.thinking == '"' + THOUGHT and answer.message.content == 'hello"', answer.message
            chunks = list(self.chat(think=think, format=forced, options={"num_predict": 60}, stream=True))
            assert "".join(c.message.thinking or "" for c in chunks) == answer.message.thinking and "".join(c.message.content for c in chunks) == answer.message.content
        answer = self.generate(think=True, format=forced, options={"num_predict": 60})
        assert answer.thinking == '"' + THOUGHT and answer.response == 'hello"'
        assert not self.chat(think=False).message.thinking

    def check_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=2)
        assert answer.logprobs and all(len(t.top_logprobs) == 2 and t.logprob <= 0 for t in answer.logprobs)
        assert "".join(t.token for t in answer.logprobs).strip() == answer.message.content.strip()

    def check_models(self):
        models = self.client.list().models
        assert [m.model for m in models] == [self.model + ":latest"] and models[0].size > 0 and models[0].details.quantization_level
        show = self.client.show(self.model)
        assert "completion" in show.capabilities and "tools" in show.capabilities and show.template and show.modelinfo
        assert [m.model for m in self.client.ps().models] == [self.model + ":latest"]

    def check_embed(self):
        answer = self.client.embed(model=self.model, input=["a dog", "the dog"])
        assert len(answer.embeddings) == 2 and abs(sum(x * x for x in answer.embeddings[0]) - 1) < 1e-4 and answer.prompt_eval_count > 0

    def check_errors(self):
        for status, call in (
            (404, lambda: self.chat(model="nobody")),
            (404, lambda: self.client.show("nobody")),
            (400, lambda: self.chat(options={"temperature": -1})),
            (400, lambda: self.chat(format={"$ref": "#/nothing"})),
            (400, lambda: self.chat(messages=[{"role": "user", "content": "word " * 40000}])),
            (400, lambda: list(self.chat(messages=[{"role": "user", "content": "word " * 40000}], stream=True))),
            (400, lambda: self.chat(messages=[{"role": "user", "content": "a", "images": [b"x"]}])),
            (401, lambda: ollama.Client(host=self.base, headers={"Authorization": "Bearer wrong"}).chat(self.model, MESSAGES)),
        ):
            error = raised(ollama.ResponseError, call)
            assert error.status_code == status and error.error, (status, error)


main(f"ollama {importlib.metadata.version('ollama')} for Python", Ollama)
