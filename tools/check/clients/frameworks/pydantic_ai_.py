# /// script
# dependencies = ["pydantic-ai-slim[openai,anthropic]==2.68.0"]
# ///
"""Pydantic AI's agents on OpenAI's APIs (chat completions and responses) and Anthropic's."""

import asyncio
import importlib.metadata

from pydantic_ai import Agent, ModelHTTPError, NativeOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from checks import Suite, main, raised
from shapes import HELLO, TEXT, Order, Small, called, get_weather

SETTINGS = {"max_tokens": 400}


class PydanticAI(Suite):
    def chat(self, name=None):
        return OpenAIChatModel(name or self.model, provider=OpenAIProvider(base_url=self.base + "/v1", api_key=self.key))

    def responses(self, name=None):
        return OpenAIResponsesModel(name or self.model, provider=OpenAIProvider(base_url=self.base + "/v1", api_key=self.key))

    def anthropic(self, name=None):
        return AnthropicModel(name or self.model, provider=AnthropicProvider(base_url=self.base, api_key=self.key), profile={"supports_json_schema_output": True})

    def plain(self, model):
        agent = Agent(model, instructions="Be brief.", model_settings=SETTINGS)
        first = agent.run_sync(HELLO)
        assert first.output == TEXT and first.usage.output_tokens > 0
        assert agent.run_sync("Again.", message_history=first.all_messages()).output == TEXT

        async def stream():
            async with agent.run_stream(HELLO) as result:
                return "".join([part async for part in result.stream_text(delta=True, debounce_by=None)])

        assert asyncio.run(stream()) == TEXT

    def tools(self, model):
        result = Agent(model, tools=[get_weather], model_settings=SETTINGS).run_sync(HELLO)
        assert called() and result.output == TEXT

        async def stream():
            async with Agent(model, tools=[get_weather], model_settings=SETTINGS).run_stream(HELLO) as result:
                return await result.get_output()

        assert asyncio.run(stream()) == TEXT and called()

    def structured(self, model, outputs=(ToolOutput, NativeOutput), kinds=(Order, Small)):
        for output in outputs:
            for kind in kinds:
                result = Agent(model, output_type=output(kind), model_settings=SETTINGS, retries=0).run_sync(HELLO)
                assert isinstance(result.output, kind), (output, kind)

    def refused(self, make):
        assert raised(ModelHTTPError, lambda: Agent(make("nobody")).run_sync(HELLO)).status_code == 404
        assert raised(ModelHTTPError, lambda: Agent(make(), model_settings={"temperature": -1}).run_sync(HELLO)).status_code == 400

    def check_chat(self):
        self.plain(self.chat())

    def check_chat_tools(self):
        self.tools(self.chat())

    def check_chat_structured(self):
        self.structured(self.chat())

    def check_chat_errors(self):
        self.refused(self.chat)

    def check_responses(self):
        self.plain(self.responses())

    def check_responses_tools(self):
        self.tools(self.responses())

    def check_responses_structured(self):
        self.structured(self.responses())

    def check_responses_errors(self):
        self.refused(self.responses)

    def check_anthropic(self):
        self.plain(self.anthropic())

    def check_anthropic_tools(self):
        self.tools(self.anthropic())

    def check_anthropic_structured(self):
        self.structured(self.anthropic(), [ToolOutput])
        self.structured(self.anthropic(), [NativeOutput], [Order])

    def check_anthropic_errors(self):
        self.refused(self.anthropic)


main(f"pydantic-ai {importlib.metadata.version('pydantic-ai-slim')}", PydanticAI)
