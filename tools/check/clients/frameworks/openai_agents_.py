# /// script
# dependencies = ["openai-agents==0.24.0"]
# ///
"""OpenAI's Agents SDK on chat completions and responses."""

import asyncio
import importlib.metadata

import openai
from agents import Agent, AgentOutputSchema, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled

from checks import Suite, main, raised
from shapes import HELLO, TEXT, Order, Small, called, get_weather

set_tracing_disabled(True)


class OpenAIAgents(Suite):
    def agent(self, kind, name=None, **more):
        client = openai.AsyncOpenAI(base_url=self.base + "/v1", api_key=self.key, max_retries=0)
        return Agent(name="a", instructions="Be brief.", model=kind(model=name or self.model, openai_client=client), model_settings=ModelSettings(max_tokens=400, **more.pop("settings", {})), **more)

    def plain(self, kind):
        agent = self.agent(kind)
        first = asyncio.run(Runner.run(agent, HELLO))
        assert first.final_output == TEXT
        assert asyncio.run(Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "Again."}])).final_output == TEXT

        async def stream():
            result = Runner.run_streamed(agent, HELLO)
            parts = [event.data.delta async for event in result.stream_events() if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
            return "".join(parts), result.final_output

        assert asyncio.run(stream()) == (TEXT, TEXT)

    def tools(self, kind):
        agent = self.agent(kind, tools=[function_tool(get_weather)])
        result = asyncio.run(Runner.run(agent, HELLO))
        assert called() and result.final_output == TEXT
        again = [*result.to_input_list(), {"role": "user", "content": "Again."}]
        assert asyncio.run(Runner.run(agent, again)).final_output == TEXT

    def handoff(self, kind):
        other = self.agent(kind)
        agent = self.agent(kind, handoffs=[other], settings={"tool_choice": "required"})
        assert asyncio.run(Runner.run(agent, HELLO)).final_output == TEXT

    def structured(self, kind):
        for shape in (Order, Small):
            agent = self.agent(kind, output_type=AgentOutputSchema(shape, strict_json_schema=False))
            assert isinstance(asyncio.run(Runner.run(agent, HELLO)).final_output, shape)
        assert isinstance(asyncio.run(Runner.run(self.agent(kind, output_type=Order), HELLO)).final_output, Order)

    def refused(self, kind):
        raised(openai.NotFoundError, lambda: asyncio.run(Runner.run(self.agent(kind, "nobody"), HELLO)))
        raised(openai.BadRequestError, lambda: asyncio.run(Runner.run(self.agent(kind, settings={"temperature": -1}), HELLO)))

    def check_chat(self):
        self.plain(OpenAIChatCompletionsModel)

    def check_chat_tools(self):
        self.tools(OpenAIChatCompletionsModel)

    def check_chat_handoff(self):
        self.handoff(OpenAIChatCompletionsModel)

    def check_chat_structured(self):
        self.structured(OpenAIChatCompletionsModel)

    def check_chat_errors(self):
        self.refused(OpenAIChatCompletionsModel)

    def check_responses(self):
        self.plain(OpenAIResponsesModel)

    def check_responses_tools(self):
        self.tools(OpenAIResponsesModel)

    def check_responses_handoff(self):
        self.handoff(OpenAIResponsesModel)

    def check_responses_structured(self):
        self.structured(OpenAIResponsesModel)

    def check_responses_errors(self):
        self.refused(OpenAIResponsesModel)

    def check_responses_previous(self):
        agent = self.agent(OpenAIResponsesModel)
        first = asyncio.run(Runner.run(agent, HELLO))
        assert asyncio.run(Runner.run(agent, "Again.", previous_response_id=first.last_response_id)).final_output == TEXT


main(f"openai-agents {importlib.metadata.version('openai-agents')} for Python", OpenAIAgents)
