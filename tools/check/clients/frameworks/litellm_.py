# /// script
# dependencies = ["litellm==1.110.2"]
# ///
"""litellm as a library: OpenAI's, Anthropic's and Ollama's APIs of the service through its functions."""

import asyncio
import importlib.metadata
import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no request to another host
import litellm

from checks import Suite, main, raised
from shapes import FUNCTION, HELLO, TEXT, Order, Small, called, get_weather

MESSAGES = [{"role": "user", "content": HELLO}]
TOOLS = [{"type": "function", "function": FUNCTION}]

litellm.suppress_debug_info = True


class Litellm(Suite):
    def __init__(self, options):
        super().__init__(options)
        self.openai = {"model": "openai/" + self.model, "api_base": self.base + "/v1", "api_key": self.key, "max_tokens": 400}
        self.anthropic = {"model": "anthropic/" + self.model, "api_base": self.base, "api_key": self.key, "max_tokens": 400}
        self.ollama = {"model": "ollama_chat/" + self.model, "api_base": self.base, "max_tokens": 400}

    def round_trip(self, api):
        answer = litellm.completion(messages=MESSAGES, tools=TOOLS, **api).choices[0].message
        call = answer.tool_calls[0]
        result = get_weather(**json.loads(call.function.arguments))
        after = [*MESSAGES, answer.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": result}]
        last = litellm.completion(messages=after, tools=TOOLS, **api).choices[0].message
        assert called() and TEXT in last.content and not last.tool_calls

    def check_completion(self):
        answer = litellm.completion(messages=MESSAGES, **self.openai)
        assert answer.choices[0].message.content == TEXT and answer.usage.total_tokens > 0

    def check_completion_stream(self):
        assert "".join(c.choices[0].delta.content or "" for c in litellm.completion(messages=MESSAGES, stream=True, **self.openai)) == TEXT

    def check_completion_async(self):
        assert asyncio.run(litellm.acompletion(messages=MESSAGES, **self.openai)).choices[0].message.content == TEXT

    def check_completion_tools(self):
        self.round_trip(self.openai)

    def check_completion_schema(self):
        for kind in (Order, Small):
            kind.model_validate_json(litellm.completion(messages=MESSAGES, response_format=kind, **self.openai).choices[0].message.content)

    def check_completion_turns(self):
        turns = [{"role": "system", "content": "Be brief."}, *MESSAGES, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Again."}]
        assert litellm.completion(messages=turns, **self.openai).choices[0].message.content == TEXT

    def check_text_completion(self):
        api = {**self.openai, "model": "text-completion-openai/" + self.model, "max_tokens": 4}
        assert litellm.text_completion(prompt="Once", **api).choices[0].text is not None

    def check_anthropic(self):
        assert litellm.completion(messages=MESSAGES, **self.anthropic).choices[0].message.content == TEXT
        assert "".join(c.choices[0].delta.content or "" for c in litellm.completion(messages=MESSAGES, stream=True, **self.anthropic)) == TEXT

    def check_anthropic_tools(self):
        self.round_trip(self.anthropic)

    def check_anthropic_messages(self):
        ask = lambda **more: asyncio.run(litellm.anthropic.messages.acreate(messages=MESSAGES, **{**self.anthropic, **more}))
        assert ask()["content"][0]["text"] == TEXT
        tools = [{"name": "get_weather", "description": "The weather", "input_schema": FUNCTION["parameters"]}]
        assert ask(tools=tools)["content"][0]["input"] == {"city": "Paris"}

    def check_ollama(self):
        assert TEXT in litellm.completion(messages=MESSAGES, **self.ollama).choices[0].message.content
        assert TEXT in "".join(c.choices[0].delta.content or "" for c in litellm.completion(messages=MESSAGES, stream=True, **self.ollama))

    def check_ollama_tools(self):
        self.round_trip(self.ollama)

    def check_responses(self):
        api = {k: v for k, v in self.openai.items() if k != "max_tokens"}
        first = litellm.responses(input=HELLO, **api)
        assert first.output[0].content[0].text == TEXT
        call = litellm.responses(input=HELLO, tools=[{"type": "function", **FUNCTION}], **api).output[-1]
        assert call.type == "function_call" and json.loads(call.arguments) == {"city": "Paris"}
        assert any(event.type == "response.completed" for event in litellm.responses(input=HELLO, stream=True, **api))

    def check_embedding(self):
        api = {k: v for k, v in self.openai.items() if k != "max_tokens"}
        assert len(litellm.embedding(input=["a", "b"], encoding_format="float", **api).data) == 2

    def check_rerank(self):
        """A decoder has no score for a pair of texts, so the service refuses, with its reason."""
        ask = lambda: litellm.rerank(model="hosted_vllm/" + self.model, api_base=self.base, api_key=self.key, query="a", documents=["b", "c"])
        assert "does not rerank" in str(raised(litellm.BadRequestError, ask))
        return "refused, as expected of a decoder"

    def check_errors(self):
        raised(litellm.BadRequestError, lambda: litellm.completion(messages=MESSAGES, temperature=-1, num_retries=0, **self.openai))
        raised(litellm.NotFoundError, lambda: litellm.completion(messages=MESSAGES, num_retries=0, **{**self.openai, "model": "openai/nobody"}))
        raised(litellm.NotFoundError, lambda: litellm.completion(messages=MESSAGES, num_retries=0, **{**self.anthropic, "model": "anthropic/nobody"}))
        raised(litellm.ContextWindowExceededError, lambda: litellm.completion(messages=[{"role": "user", "content": "word " * 40000}], num_retries=0, **self.openai))


main(f"litellm {importlib.metadata.version('litellm')}", Litellm)
