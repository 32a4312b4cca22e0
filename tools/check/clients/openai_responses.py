"""The official openai client for Python, unmodified, against the Responses API."""

import json

import openai

from checks import CALL, CITY, PERSON, THINK, THOUGHT, Person, Suite, main, raised

WEATHER = {"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": CITY, "strict": True}
THINKING = {"chat_template_kwargs": {"enable_thinking": True}, "guided_regex": THINK + "hello"}


class Responses(Suite):
    def __init__(self, options):
        super().__init__(options)
        self.client = openai.OpenAI(base_url=self.base + "/v1", api_key=self.key, max_retries=0, timeout=300)
        self.api = self.client.responses

    def create(self, **more):
        args = {"model": self.model, "input": "Say hello.", "max_output_tokens": 12, "temperature": 0}
        return self.api.create(**{**args, **more})

    def forced(self, text, **more):
        return self.create(**{"max_output_tokens": 100, **more}, extra_body={"guided_regex": text})

    def check_create(self):
        answer = self.create(instructions="You are brief.", metadata={"a": "b"})
        assert answer.object == "response" and answer.id.startswith("resp_") and answer.status in ("completed", "incomplete") and answer.model == self.model
        assert answer.output[0].type == "message" and answer.output[0].role == "assistant" and answer.output_text
        assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens and answer.usage.output_tokens <= 12
        assert answer.metadata == {"a": "b"} and answer.instructions == "You are brief." and answer.error is None

    def check_create_items(self):
        text = self.create().output_text
        for items in (
            [{"role": "user", "content": "Say hello."}],
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hello."}]}],
        ):
            assert self.create(input=items).output_text == text

    def check_status(self):
        cut = self.create(max_output_tokens=3, extra_body={"ignore_eos": True})
        assert cut.status == "incomplete" and cut.incomplete_details.reason == "max_output_tokens" and cut.usage.output_tokens == 3
        whole = self.forced("done")
        assert whole.status == "completed" and whole.incomplete_details is None and whole.output_text == "done"

    def check_stream(self):
        whole, text, kinds, numbers = self.create(), "", [], []
        for event in self.create(stream=True):
            kinds.append(event.type)
            numbers.append(event.sequence_number)
            if event.type == "response.output_text.delta":
                text += event.delta
        assert text == whole.output_text and numbers == list(range(len(numbers)))
        assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"], kinds
        assert kinds[-4:-1] == ["response.output_text.done", "response.content_part.done", "response.output_item.done"] and kinds[-1] == "response." + whole.status
        assert event.response.output_text == text and event.response.usage.output_tokens == whole.usage.output_tokens

    def check_stream_helper(self):
        with self.api.stream(model=self.model, input="Say hello.", extra_body={"guided_regex": "hello"}) as stream:
            text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            last = stream.get_final_response()  # the client has none for answers that were cut off
        assert text == last.output_text == "hello"

    def check_parse(self):
        answer = self.api.parse(model=self.model, input="Who?", max_output_tokens=200, text_format=Person)
        assert isinstance(answer.output_parsed, Person)
        with self.api.stream(model=self.model, input="Who?", text_format=Person) as stream:
            assert isinstance(stream.get_final_response().output_parsed, Person)

    def check_formats(self):
        text = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
        Person.model_validate_json(self.create(max_output_tokens=200, text=text).output_text, strict=True)
        assert self.create(max_output_tokens=30, text={"format": {"type": "json_object"}}).output_text.lstrip().startswith("{")

    def check_tools(self):
        """A call that the model decides on, its result, and the answer to it; the client keeps the items."""
        first = self.forced(CALL, tools=[WEATHER])
        call = first.output[-1]
        assert call.type == "function_call" and call.name == "get_weather" and json.loads(call.arguments) == {"city": "Paris"} and first.status == "completed"
        items = [{"role": "user", "content": "Say hello."}, *first.output, {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        last = self.forced("It is sunny", input=items, tools=[WEATHER])
        assert last.output_text == "It is sunny" and last.usage.input_tokens > first.usage.input_tokens

    def check_tools_stored(self):
        """The same, with the items that the service has stored."""
        first = self.forced(CALL, tools=[WEATHER])
        output = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": [{"type": "input_text", "text": "sunny"}]}
        last = self.forced("It is sunny", input=[output], tools=[WEATHER], previous_response_id=first.id)
        assert last.output_text == "It is sunny" and last.previous_response_id == first.id

    def check_tool_choice(self):
        for choice in ("required", {"type": "function", "name": "get_weather"}, {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]}):
            answer = self.create(tools=[WEATHER], tool_choice=choice, max_output_tokens=200)
            assert [item.type for item in answer.output] == ["function_call"] and set(json.loads(answer.output[0].arguments)) == {"city"}, answer.output
        assert all(item.type == "message" for item in self.create(tools=[WEATHER], tool_choice="none").output)

    def check_tools_stream(self):
        arguments, done = "", None
        for event in self.forced(CALL, tools=[WEATHER], stream=True):
            if event.type == "response.function_call_arguments.delta":
                arguments += event.delta
            if event.type == "response.function_call_arguments.done":
                done = event.arguments
        assert arguments == done == event.response.output[-1].arguments and json.loads(done) == {"city": "Paris"}

    def check_tools_and_format(self):
        """The answer is a call or a text in the format; a required call has no text."""
        more = {"tools": [WEATHER], "text": {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}, "max_output_tokens": 200}
        for _ in range(6):
            answer = self.create(temperature=1, **more)
            if answer.output[0].type == "function_call":
                assert set(json.loads(answer.output[0].arguments)) == {"city"}
            else:
                Person.model_validate_json(answer.output_text)
        assert self.create(tool_choice="required", **more).output[0].type == "function_call"

    def check_namespace(self):
        space = {"type": "namespace", "name": "city", "description": "About cities.", "tools": [WEATHER]}
        call = self.forced(CALL.replace("get_weather", "city__get_weather"), tools=[space]).output[0]
        assert (call.type, call.namespace, call.name) == ("function_call", "city", "get_weather")
        items = [{"role": "user", "content": "Say hello."}, call, {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        assert self.forced("It is sunny", input=items, tools=[space]).output_text == "It is sunny"

    def check_tools_parse(self):
        tool = openai.pydantic_function_tool(Person, name="add")
        answer = self.api.parse(model=self.model, input="Who?", max_output_tokens=200, tool_choice="required", tools=[tool])
        assert isinstance(answer.output[0].parsed_arguments, Person)

    def check_custom_tool(self):
        tool = {"type": "custom", "name": "code", "description": "Runs code.", "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]{3}"}}
        answer = self.create(tools=[tool], tool_choice={"type": "custom", "name": "code"}, max_output_tokens=100)
        call = answer.output[0]
        assert call.type == "custom_tool_call" and call.name == "code" and len(call.input) == 3
        output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"}
        assert self.forced("fine", input=[output], tools=[tool], previous_response_id=answer.id).output_text == "fine"

    def check_reasoning(self):
        answer = self.create(max_output_tokens=100, reasoning={"effort": "low"}, extra_body=THINKING)
        assert [item.type for item in answer.output] == ["reasoning", "message"] and answer.output[0].content[0].text == THOUGHT and answer.output_text == "hello"
        assert 0 < answer.usage.output_tokens_details.reasoning_tokens < answer.usage.output_tokens and answer.reasoning.effort == "low"

    def check_reasoning_summary(self):
        answer = self.create(max_output_tokens=100, reasoning={"summary": "auto"}, extra_body=THINKING)
        assert answer.output[0].summary[0].text == THOUGHT
        deltas = "".join(e.delta for e in self.create(max_output_tokens=100, reasoning={"summary": "auto"}, stream=True, extra_body=THINKING) if e.type == "response.reasoning_summary_text.delta")
        assert deltas == THOUGHT

    def check_reasoning_encrypted(self):
        first = self.create(max_output_tokens=100, store=False, include=["reasoning.encrypted_content"], extra_body=THINKING)
        assert first.output[0].encrypted_content
        for item in first.output[:1]:
            item.content = None
        again = self.api.input_tokens.count(model=self.model, input=[{"role": "user", "content": "Say hello."}, *first.output, {"role": "user", "content": "Go on."}])
        without = self.api.input_tokens.count(model=self.model, input=[{"role": "user", "content": "Say hello."}, *first.output[1:], {"role": "user", "content": "Go on."}])
        assert again.input_tokens > without.input_tokens

    def check_logprobs(self):
        answer = self.create(include=["message.output_text.logprobs"], top_logprobs=2)
        logprobs = answer.output[0].content[0].logprobs
        assert logprobs and all(len(t.top_logprobs) == 2 and t.logprob <= 0 for t in logprobs)
        assert "".join(t.token for t in logprobs).strip() == answer.output_text.strip()

    def check_previous(self):
        first = self.create(input="My name is Tom.")
        second = self.create(input="Say it.", previous_response_id=first.id)
        both = [{"role": "user", "content": "My name is Tom."}, {"role": "assistant", "content": first.output_text}, {"role": "user", "content": "Say it."}]
        assert second.output_text == self.create(input=both).output_text and second.usage.input_tokens > first.usage.input_tokens
        error = raised(openai.NotFoundError, lambda: self.create(previous_response_id="resp_none"))
        assert error.code == "previous_response_not_found"

    def check_stored(self):
        answer = self.create()
        assert self.api.retrieve(answer.id).output_text == answer.output_text
        items = self.api.input_items.list(answer.id)
        assert [item.role for item in items] == ["user"] and items.data[0].content[0].text == "Say hello." and items.data[0].id
        self.api.delete(answer.id)
        raised(openai.NotFoundError, lambda: self.api.retrieve(answer.id))
        raised(openai.NotFoundError, lambda: self.api.retrieve(self.create(store=False).id))

    def check_input_items_pages(self):
        answer = self.create(input=[{"role": "user", "content": word} for word in ("one", "two", "three")])
        text = lambda order, **more: [item.content[0].text for item in self.api.input_items.list(answer.id, order=order, **more)]
        assert text("asc") == ["one", "two", "three"] and text("desc") == ["three", "two", "one"] and text("asc", limit=1) == ["one", "two", "three"]

    def check_input_tokens(self):
        count = self.api.input_tokens.count(model=self.model, input="Say hello.", instructions="You are brief.")
        assert count.input_tokens == self.create(instructions="You are brief.").usage.input_tokens

    def check_errors(self):
        for more, kind, param in (
            ({"model": "nobody"}, openai.NotFoundError, "model"),
            ({"input": []}, openai.BadRequestError, "input"),
            ({"temperature": -1}, openai.BadRequestError, "temperature"),
            ({"max_output_tokens": -2}, openai.BadRequestError, "max_output_tokens"),
            ({"background": True}, openai.BadRequestError, "background"),
            ({"tools": [{"type": "web_search"}]}, openai.BadRequestError, "tools"),
            ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]}, openai.BadRequestError, "input"),
            ({"input": "word " * 40000}, openai.BadRequestError, "input"),
            ({"stream": True, "input": "word " * 40000}, openai.BadRequestError, "input"),
        ):
            error = raised(kind, lambda: self.create(**more))
            assert error.param == param and error.type == "invalid_request_error" and error.body["message"], (list(more), error.body)
        raised(openai.AuthenticationError, lambda: openai.OpenAI(base_url=self.base + "/v1", api_key="wrong", max_retries=0).responses.create(model=self.model, input="a"))


main(f"openai {openai.__version__} for Python, responses", Responses)
