"""The official openai client for Python, unmodified, against chat completions, completions and embeddings. The checks
look at shapes and at what must agree with itself, so that any decoder with a chat template will do. With --perplexity,
the log-likelihoods of echo are compared with what the model's own subcommand perplexity printed for the text."""

import asyncio
import base64
import concurrent.futures
import json
import struct

import openai

from checks import CALL, CITY, PERSON, THINK, THOUGHT, Person, Suite, main, raised

MESSAGES = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Say hello."}]
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": CITY}}


class Chat(Suite):
    def __init__(self, options):
        super().__init__(options)
        self.client = openai.OpenAI(base_url=self.base + "/v1", api_key=self.key, max_retries=0, timeout=300)

    def chat(self, **more):
        args = {"model": self.model, "messages": MESSAGES, "max_tokens": 12, "temperature": 0}
        return self.client.chat.completions.create(**{**args, **more})

    def complete(self, **more):
        args = {"model": self.model, "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
        return self.client.completions.create(**{**args, **more})

    def check_models(self):
        assert self.client.models.retrieve(self.model).id == self.model

    def check_chat(self):
        answer = self.chat()
        choice = answer.choices[0]
        assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
        assert choice.message.role == "assistant" and choice.message.content
        assert choice.finish_reason in ("stop", "length")
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
        assert answer.usage.completion_tokens <= 12

    def check_chat_stream_equals_whole(self):
        whole = self.chat().choices[0]
        text, finish, usage, role = "", None, None, None
        for chunk in self.chat(stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                role = choice.delta.role or role
                finish = choice.finish_reason or finish
        assert text == whole.message.content and finish == whole.finish_reason and role == "assistant"
        assert usage.completion_tokens > 0

    def check_chat_stream_helper(self):
        with self.client.chat.completions.stream(model=self.model, messages=MESSAGES, max_tokens=8, temperature=0) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
        assert text == self.chat(max_tokens=8).choices[0].message.content

    def check_chat_many(self):
        answer = self.chat(n=3, temperature=1, seed=5)
        assert [c.index for c in answer.choices] == [0, 1, 2]
        again = self.chat(n=3, temperature=1, seed=5)
        assert [c.message.content for c in answer.choices] == [c.message.content for c in again.choices]

    def check_chat_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=4)
        content = answer.choices[0].logprobs.content
        assert len(content) == answer.usage.completion_tokens
        for token in content:
            assert len(token.top_logprobs) == 4 and token.logprob <= 0
            assert abs(token.top_logprobs[0].logprob - token.logprob) < 1e-9  # greedy takes the argmax
        stream = [c for chunk in self.chat(logprobs=True, stream=True) for c in chunk.choices if c.logprobs]
        assert sum(len(c.logprobs.content) for c in stream) == len(content)

    def check_parameters(self):
        greedy = self.chat().choices[0].message.content
        assert self.chat(temperature=1, top_p=1e-9).choices[0].message.content == greedy
        assert self.chat(temperature=1, extra_body={"top_k": 1}).choices[0].message.content == greedy
        assert self.chat(temperature=1, extra_body={"min_p": 1}).choices[0].message.content == greedy
        for more in (
            {"typical_p": 0.5}, {"tfs_z": 0.5}, {"mirostat": 1, "mirostat_tau": 3}, {"mirostat": 2, "mirostat_eta": 0.2},
            {"strategy": "fsd:k=4"}, {"strategy": {"name": "random_fsd", "alpha": 0.4}}, {"strategy": "sample.std"},
            {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3}, {"min_tokens": 5}, {"ignore_eos": True}, {"priority": 1},
        ):
            assert self.chat(extra_body=more, temperature=0.8, seed=1).choices[0].message.content is not None, more
        self.chat(frequency_penalty=1.5, presence_penalty=-1, max_completion_tokens=5, user="someone", stop=["xyzzy"])

    def check_logit_bias(self):
        ids = self.post("/tokenize", {"content": "the", "add_special": False})["ids"]
        answer = self.complete(logit_bias={str(ids[0]): 100}, max_tokens=3)
        assert answer.choices[0].text == self.post("/detokenize", {"tokens": ids[:1] * 3})["text"]

    def check_completion(self):
        answer = self.complete()
        assert answer.object == "text_completion" and answer.choices[0].text
        text = "".join(chunk.choices[0].text for chunk in self.complete(stream=True) if chunk.choices)
        assert text == answer.choices[0].text

    def check_completion_prompts(self):
        texts = ["Once upon a time", "There was a dog"]
        answers = self.complete(prompt=texts, n=2)
        assert [c.index for c in answers.choices] == [0, 1, 2, 3]
        ids = [self.post("/tokenize", {"content": t})["ids"] for t in texts]
        assert [c.text for c in self.complete(prompt=ids).choices] == [c.text for c in answers.choices][::2]

    def check_stop(self):
        text = self.complete(max_tokens=30).choices[0].text
        word = text[8:11]
        answer = self.complete(max_tokens=30, stop=[word]).choices[0]
        assert answer.finish_reason == "stop" and answer.text == text[: text.index(word)]

    def check_echo(self):
        """The log-likelihood of a continuation as lm-eval asks for it: both ways give the same."""
        answer = self.complete(prompt="The dog is happy.", max_tokens=0, echo=True, logprobs=1)
        logprobs = answer.choices[0].logprobs
        assert answer.choices[0].text == "The dog is happy." and answer.usage.completion_tokens == 0
        assert logprobs.token_logprobs[0] is None and all(l <= 0 for l in logprobs.token_logprobs[1:])
        assert len(logprobs.tokens) == answer.usage.prompt_tokens == len(logprobs.top_logprobs)
        greedy = self.complete(max_tokens=1, logprobs=1)
        echoed = self.complete(prompt="Once upon a time" + greedy.choices[0].text, max_tokens=0, echo=True, logprobs=1)
        if len(echoed.choices[0].logprobs.tokens) == greedy.usage.prompt_tokens + 1:
            assert echoed.choices[0].logprobs.token_logprobs[-1] == greedy.choices[0].logprobs.token_logprobs[0]

    def check_perplexity(self):
        if not self.perplexity:
            return "not given"
        with open(self.perplexity) as file:
            expected = json.load(file)
        with open(self.text, "rb") as file:
            text = file.read().decode()
        answer = self.complete(prompt=text, max_tokens=0, echo=True, logprobs=0)
        scored = [l for l in answer.choices[0].logprobs.token_logprobs if l is not None]
        nll = -sum(scored) / len(scored)
        assert len(scored) == expected["tokens"], (len(scored), expected)
        assert abs(nll - expected["nll"]) < 1e-9, (nll, expected)
        return f"nll {nll:.9f}"

    def check_embeddings(self):
        texts = ["a dog", "the dog", "mathematics is hard"]
        try:
            floats = self.client.embeddings.create(model=self.model, input=texts, encoding_format="float")
        except openai.BadRequestError as error:
            assert "does not support embeddings" in str(error)
            return "this model has none"
        coded = self.client.embeddings.create(model=self.model, input=texts)  # the client asks for base64 by itself
        for a, b in zip(floats.data, coded.data):
            assert len(a.embedding) == len(b.embedding)
            assert all(struct.pack("<f", x) == struct.pack("<f", y) for x, y in zip(a.embedding, b.embedding))
            assert abs(sum(x * x for x in a.embedding) - 1) < 1e-4
        raw = self.post("/v1/embeddings", {"input": texts[0], "encoding_format": "base64"})["data"][0]["embedding"]
        assert len(base64.b64decode(raw)) == 4 * len(floats.data[0].embedding)
        short = self.client.embeddings.create(model=self.model, input=texts[0], dimensions=8, encoding_format="float")
        assert len(short.data[0].embedding) == 8 and floats.usage.prompt_tokens > 0

    def check_json_schema(self):
        answer = self.chat(max_tokens=200, temperature=1, seed=3, response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}})
        Person.model_validate_json(answer.choices[0].message.content, strict=True)
        assert answer.choices[0].finish_reason == "stop"

    def check_json_object(self):
        answer = self.chat(max_tokens=40, response_format={"type": "json_object"})
        assert answer.choices[0].message.content.lstrip().startswith("{")

    def check_regex_and_grammar(self):
        answer = self.chat(max_tokens=20, extra_body={"guided_regex": "(yes|no)"})
        assert answer.choices[0].message.content in ("yes", "no") and answer.choices[0].finish_reason == "stop"
        answer = self.complete(max_tokens=20, extra_body={"grammar": 'root ::= "a" [0-9] [0-9]'})
        assert len(answer.choices[0].text) == 3 and answer.choices[0].text[0] == "a"

    def check_parse(self):
        answer = self.client.chat.completions.parse(model=self.model, messages=MESSAGES, max_tokens=200, response_format=Person)
        assert isinstance(answer.choices[0].message.parsed, Person)

    def check_reasoning(self):
        for more in ({}, {"reasoning_effort": "high"}):
            body = {"guided_regex": THINK + "hello", "chat_template_kwargs": {"enable_thinking": True}}
            message = self.chat(max_tokens=60, extra_body=body, **more).choices[0].message
            assert message.content == "hello" and message.reasoning_content == THOUGHT, message

    def check_tools(self):
        """A call that the model decides on, its result, and the answer to it."""
        answer = self.chat(tools=[WEATHER], max_tokens=100, extra_body={"guided_regex": CALL}).choices[0]
        assert answer.finish_reason == "tool_calls" and not answer.message.content, answer
        call = answer.message.tool_calls[0]
        assert call.type == "function" and call.id and call.function.name == "get_weather" and json.loads(call.function.arguments) == {"city": "Paris"}
        after = MESSAGES + [answer.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        last = self.chat(messages=after, tools=[WEATHER], extra_body={"guided_regex": "It is sunny"}).choices[0]
        assert last.message.content == "It is sunny" and last.finish_reason == "stop" and not last.message.tool_calls

    def check_tool_choice(self):
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            answer = self.chat(tools=[WEATHER], tool_choice=choice, max_tokens=200, temperature=1, seed=2).choices[0]
            assert answer.finish_reason == "tool_calls" and set(json.loads(answer.message.tool_calls[0].function.arguments)) == {"city"}, answer
        assert self.chat(tools=[WEATHER], tool_choice="none").choices[0].message.tool_calls is None
        assert self.chat(tools=[WEATHER], parallel_tool_calls=False, tool_choice="required", max_tokens=200).choices[0].message.tool_calls

    def check_tools_and_format(self):
        """The answer is a call or a text in the format; a required call has no text."""
        form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
        for seed in range(6):
            message = self.chat(tools=[WEATHER], response_format=form, max_tokens=200, temperature=1, seed=seed).choices[0].message
            if message.tool_calls:
                assert set(json.loads(message.tool_calls[0].function.arguments)) == {"city"}
            else:
                Person.model_validate_json(message.content)
        assert self.chat(tools=[WEATHER], tool_choice="required", response_format=form, max_tokens=200).choices[0].message.tool_calls

    def check_tools_parse(self):
        tool = openai.pydantic_function_tool(Person, name="add")
        answer = self.client.chat.completions.parse(model=self.model, messages=MESSAGES, max_tokens=200, tools=[tool], tool_choice="required")
        assert isinstance(answer.choices[0].message.tool_calls[0].function.parsed_arguments, Person)

    def check_tools_stream(self):
        name, arguments, finish = "", "", None
        for chunk in self.chat(tools=[WEATHER], max_tokens=120, stream=True, extra_body={"guided_regex": CALL}):
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or []:
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
        assert finish == "tool_calls" and name == "get_weather" and json.loads(arguments) == {"city": "Paris"}

    def check_errors(self):
        for more, kind, param in (
            ({"model": "nobody"}, openai.NotFoundError, "model"),
            ({"messages": []}, openai.BadRequestError, "messages"),
            ({"temperature": -1}, openai.BadRequestError, "temperature"),
            ({"top_logprobs": 99, "logprobs": True}, openai.BadRequestError, "top_logprobs"),
            ({"logit_bias": {"-5": 1}}, openai.BadRequestError, "logit_bias"),
            ({"n": 0}, openai.BadRequestError, "n"),
            ({"max_tokens": "many"}, openai.BadRequestError, "max_tokens"),
            ({"response_format": {"type": "haiku"}}, openai.BadRequestError, "response_format"),
            ({"messages": [{"role": "user", "content": "word " * 40000}]}, openai.BadRequestError, "messages"),
        ):
            error = raised(kind, lambda: self.chat(**more))
            assert error.param == param and error.body["message"] and error.type == "invalid_request_error", (more, error.body)
        error = raised(openai.BadRequestError, lambda: self.chat(messages=[{"role": "user", "content": "word " * 40000}]))
        assert error.code == "context_length_exceeded"

    def check_key(self):
        if self.key == "none":
            return "the service asks for none"
        error = raised(openai.AuthenticationError, openai.OpenAI(base_url=self.base + "/v1", api_key="wrong", max_retries=0).models.list)
        assert error.code == "invalid_api_key"

    def check_async(self):
        async def one(client):
            answer = await client.chat.completions.create(model=self.model, messages=MESSAGES, max_tokens=6, temperature=0)
            return answer.choices[0].message.content

        async def all_():
            async with openai.AsyncOpenAI(base_url=self.base + "/v1", api_key=self.key) as client:
                return await asyncio.gather(*(one(client) for _ in range(8)))

        assert len(set(asyncio.run(all_()))) == 1

    def check_same_alone_and_in_company(self):
        prompts = [f"Once upon a time number {i}" for i in range(12)]
        alone = [self.complete(prompt=p, max_tokens=20).choices[0].text for p in prompts]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            together = list(pool.map(lambda p: self.complete(prompt=p, max_tokens=20).choices[0].text, prompts))
        assert alone == together

    def check_native(self):
        answer = self.post("/inferflow", {"header": {"fn": "process_query"}, "text": "Hello", "temperature": 0, "max_output_len": 8, "decoding_alg": "greedy"})
        assert answer["ret_code"] == "succ" and answer["is_end"] and answer["text"]

    def check_operators(self):
        health = json.loads(self.get("/health"))
        assert health["status"] == "ok"
        metrics = self.get("/metrics")
        for name in ("iflowc_time_to_first_token_seconds_bucket", "iflowc_inter_token_seconds_sum", "iflowc_requests_waiting", "iflowc_kv_usage_ratio", "iflowc_prefix_hits_tokens_total"):
            assert name in metrics, name
        assert json.loads(self.get("/props"))["model"]["id"] == self.model

    def check_prefix(self):
        """Of a second prompt that begins the same, whole pages are not computed again."""
        long = "Once upon a time there was a dog. " * 20
        self.complete(prompt=long + "It", max_tokens=1)
        answer = self.complete(prompt=long + "He", max_tokens=1)
        cached = answer.usage.prompt_tokens_details.cached_tokens
        assert cached >= answer.usage.prompt_tokens - 130, (cached, answer.usage.prompt_tokens)


main(f"openai {openai.__version__} for Python, chat and completions", Chat)
