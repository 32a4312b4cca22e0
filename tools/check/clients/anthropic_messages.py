"""The official anthropic client for Python, unmodified, against the Messages API."""

import asyncio
from typing import Literal

import anthropic
import pydantic

from checks import CALL, CITY, PERSON, THINK, THOUGHT, Person, Suite, main, raised

MESSAGES = [{"role": "user", "content": "Say hello."}]
WEATHER = {"name": "get_weather", "description": "The weather of a city.", "input_schema": CITY}
THINKING = {"type": "enabled", "budget_tokens": 1024}


class Pet(pydantic.BaseModel):
    """The client leaves ranges of numbers and lengths of texts out of the schema."""

    kind: Literal["cat", "dog"]
    small: bool


class Messages(Suite):
    def __init__(self, options):
        super().__init__(options)
        self.client = anthropic.Anthropic(base_url=self.base, api_key=self.key, max_retries=0, timeout=300)

    def create(self, **more):
        return self.client.messages.create(**{"model": self.model, "messages": MESSAGES, "max_tokens": 12, **more})

    def forced(self, text, **more):
        return self.create(**{"max_tokens": 100, **more}, extra_body={"guided_regex": text})

    def check_create(self):
        answer = self.create(system="You are brief.")
        assert answer.type == "message" and answer.role == "assistant" and answer.id.startswith("msg_") and answer.model == self.model
        assert answer.content[0].type == "text" and answer.content[0].text and answer.stop_reason in ("end_turn", "max_tokens")
        assert 0 < answer.usage.output_tokens <= 12 and answer.usage.input_tokens + answer.usage.cache_read_input_tokens > 0

    def check_blocks(self):
        text = lambda **more: self.create(extra_body={"temperature": 0}, **more).content[0].text
        parts = [{"role": "user", "content": [{"type": "text", "text": "Say hello.", "cache_control": {"type": "ephemeral"}}]}]
        assert text(system="Be brief.") == text(system=[{"type": "text", "text": "Be brief."}], messages=parts)

    def check_several_turns(self):
        turns = [*MESSAGES, {"role": "assistant", "content": self.create().content}, {"role": "user", "content": "Again."}]
        assert self.forced("hello", messages=turns).content[0].text == "hello"

    def check_stop_reasons(self):
        cut = self.create(max_tokens=3, extra_body={"ignore_eos": True})
        assert cut.stop_reason == "max_tokens" and cut.usage.output_tokens == 3
        assert self.forced("done").stop_reason == "end_turn"
        stopped = self.forced("hello", stop_sequences=["ll"])
        assert stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == "ll" and stopped.content[0].text == "he"

    def check_stream(self):
        kinds, text = [], ""
        for event in self.forced("hello", stream=True):
            kinds.append(event.type)
            if event.type == "content_block_delta":
                text += event.delta.text
        assert text == "hello" and kinds[:2] == ["message_start", "content_block_start"] and kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"], kinds

    def check_stream_helper(self):
        with self.client.messages.stream(model=self.model, messages=MESSAGES, max_tokens=12, extra_body={"temperature": 0}) as stream:
            text = "".join(stream.text_stream)
            last = stream.get_final_message()
        whole = self.create(extra_body={"temperature": 0})
        assert text == last.content[0].text == whole.content[0].text and last.stop_reason == whole.stop_reason
        assert last.usage.output_tokens == whole.usage.output_tokens

    def check_tools(self):
        """A call that the model decides on, its result, and the answer to it."""
        first = self.forced(CALL, tools=[WEATHER])
        use = first.content[-1]
        assert first.stop_reason == "tool_use" and use.type == "tool_use" and use.name == "get_weather" and use.input == {"city": "Paris"}
        for result in ({"content": "sunny"}, {"content": [{"type": "text", "text": "sunny"}]}, {"content": "no", "is_error": True}, {}):
            after = [*MESSAGES, {"role": "assistant", "content": first.content}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, **result}]}]
            last = self.forced("It is sunny", messages=after, tools=[WEATHER])
            assert last.content[0].text == "It is sunny" and last.stop_reason == "end_turn"

    def check_tool_choice(self):
        for choice in ({"type": "any"}, {"type": "tool", "name": "get_weather"}, {"type": "any", "disable_parallel_tool_use": True}):
            answer = self.create(tools=[WEATHER], tool_choice=choice, max_tokens=200)
            assert [b.type for b in answer.content] == ["tool_use"] and set(answer.content[0].input) == {"city"}, answer.content
        assert all(b.type == "text" for b in self.create(tools=[WEATHER], tool_choice={"type": "none"}).content)

    def check_tools_stream(self):
        parts = ""
        with self.client.messages.stream(model=self.model, messages=MESSAGES, max_tokens=100, tools=[WEATHER], extra_body={"guided_regex": CALL}) as stream:
            for event in stream:
                if event.type == "input_json":
                    parts += event.partial_json
            last = stream.get_final_message()
        assert last.content[-1].input == {"city": "Paris"} and '"Paris"' in parts and last.stop_reason == "tool_use"

    def check_tool_runner(self):
        """The client runs the tool by itself; the second answer ends the loop."""
        cities = []

        @anthropic.beta_tool
        def get_weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        runner = self.client.beta.messages.tool_runner(
            model=self.model, messages=MESSAGES, max_tokens=200, tools=[get_weather], tool_choice={"type": "any"}, max_iterations=1
        )
        assert next(iter(runner)).stop_reason == "tool_use"
        assert runner.generate_tool_call_response()["content"][0]["content"] == "sunny" and len(cities) == 1

    def check_thinking(self):
        answer = self.forced(THINK + "hello", thinking=THINKING)
        assert [b.type for b in answer.content] == ["thinking", "text"] and answer.content[0].thinking == THOUGHT and answer.content[1].text == "hello"
        again = [*MESSAGES, {"role": "assistant", "content": answer.content}, {"role": "user", "content": "Again."}]
        assert self.forced("hello", messages=again, thinking={"type": "disabled"}).content[0].text == "hello"
        assert self.forced(THINK + "hello", thinking={"type": "adaptive"}).content[0].thinking == THOUGHT

    def check_thinking_stream(self):
        with self.client.messages.stream(model=self.model, messages=MESSAGES, max_tokens=100, thinking=THINKING, extra_body={"guided_regex": THINK + "hello"}) as stream:
            deltas = "".join(event.thinking for event in stream if event.type == "thinking")
            last = stream.get_final_message()
        assert deltas == last.content[0].thinking == THOUGHT and last.content[1].text == "hello"

    def check_thinking_and_tools(self):
        answer = self.forced(THINK + CALL, thinking=THINKING, tools=[WEATHER])
        assert [b.type for b in answer.content] == ["thinking", "tool_use"] and answer.stop_reason == "tool_use"

    def check_parse(self):
        answer = self.client.messages.parse(model=self.model, messages=MESSAGES, max_tokens=200, output_format=Pet)
        assert isinstance(answer.parsed_output, Pet)
        with self.client.messages.stream(model=self.model, messages=MESSAGES, max_tokens=200, output_format=Pet) as stream:
            assert isinstance(stream.get_final_message().parsed_output, Pet)

    def check_tools_and_format(self):
        """The answer is a call or a text in the format."""
        for _ in range(6):
            block = self.create(max_tokens=200, tools=[WEATHER], output_config={"format": {"type": "json_schema", "schema": PERSON}}).content[0]
            if block.type == "tool_use":
                assert set(block.input) == {"city"}
            else:
                Person.model_validate_json(block.text)

    def check_output_config(self):
        answer = self.create(max_tokens=200, output_config={"format": {"type": "json_schema", "schema": PERSON}, "effort": "low"})
        Person.model_validate_json(answer.content[0].text, strict=True)

    def check_count_tokens(self):
        count = self.client.messages.count_tokens(model=self.model, messages=MESSAGES, system="Be brief.", tools=[WEATHER])
        usage = self.create(system="Be brief.", tools=[WEATHER]).usage
        assert count.input_tokens == usage.input_tokens + usage.cache_read_input_tokens

    def check_models(self):
        assert [m.id for m in self.client.models.list()] == [self.model] and self.client.models.retrieve(self.model).id == self.model

    def check_sampling(self):
        greedy = self.create(extra_body={"temperature": 0}).content[0].text
        assert self.create(extra_body={"top_k": 1}).content[0].text == greedy and self.create(extra_body={"top_p": 1e-9}).content[0].text == greedy
        self.create(metadata={"user_id": "someone"}, service_tier="auto")

    def check_async(self):
        async def all_():
            async with anthropic.AsyncAnthropic(base_url=self.base, api_key=self.key) as client:
                return await asyncio.gather(*(client.messages.create(model=self.model, messages=MESSAGES, max_tokens=6, extra_body={"temperature": 0}) for _ in range(8)))

        assert len({answer.content[0].text for answer in asyncio.run(all_())}) == 1

    def check_errors(self):
        for more, kind, name in (
            ({"model": "nobody"}, anthropic.NotFoundError, "not_found_error"),
            ({"messages": []}, anthropic.BadRequestError, "invalid_request_error"),
            ({"max_tokens": -1}, anthropic.BadRequestError, "invalid_request_error"),
            ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, anthropic.BadRequestError, "invalid_request_error"),
            ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "none"}}, anthropic.BadRequestError, "invalid_request_error"),
            ({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}]}, anthropic.BadRequestError, "invalid_request_error"),
            ({"messages": [{"role": "user", "content": "word " * 40000}]}, anthropic.BadRequestError, "invalid_request_error"),
            ({"messages": [{"role": "user", "content": "word " * 40000}], "stream": True}, anthropic.BadRequestError, "invalid_request_error"),
        ):
            error = raised(kind, lambda: self.create(**more))
            assert error.body["type"] == "error" and error.body["error"]["type"] == name and error.body["error"]["message"], (list(more), error.body)
        wrong = anthropic.Anthropic(base_url=self.base, api_key="wrong", max_retries=0)
        error = raised(anthropic.AuthenticationError, lambda: wrong.messages.create(model=self.model, messages=MESSAGES, max_tokens=1))
        assert error.body["error"]["type"] == "authentication_error"
        raised(anthropic.NotFoundError, lambda: self.client.models.retrieve("nobody"))


main(f"anthropic {anthropic.__version__} for Python", Messages)
