# /// script
# dependencies = ["llama-index-core==0.14.25", "llama-index-llms-openai-like==0.8.1", "llama-index-llms-ollama==0.11.0"]
# ///
"""LlamaIndex's models of OpenAI-like services and of Ollama. Its model of Anthropic takes the names of Anthropic's models alone."""

import asyncio
import importlib.metadata

import openai
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai_like import OpenAILike

from checks import Suite, main, raised
from shapes import HELLO, TEXT, Order, Small, called, get_weather

TURNS = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=HELLO), ChatMessage(role="assistant", content="Hello."), ChatMessage(role="user", content="Again.")]


class LlamaIndex(Suite):
    def like(self, name=None, **more):
        return OpenAILike(model=name or self.model, api_base=self.base + "/v1", api_key=self.key, is_chat_model=True, is_function_calling_model=True, context_window=32768, max_tokens=400, max_retries=0, **more)

    def ollama(self):
        return Ollama(model=self.model, base_url=self.base, request_timeout=60, context_window=32768, additional_kwargs={"num_predict": 400})

    def plain(self, llm):
        assert TEXT in llm.complete(HELLO).text and TEXT in llm.chat(TURNS).message.content
        assert TEXT in "".join(part.delta or "" for part in llm.stream_chat(TURNS))

    def tools(self, llm):
        tool = FunctionTool.from_defaults(get_weather)
        answer = llm.chat_with_tools([tool], user_msg=HELLO)
        calls = llm.get_tool_calls_from_response(answer)
        assert [(c.tool_name, c.tool_kwargs) for c in calls] == [("get_weather", {"city": "Paris"})]

        async def run():
            return await FunctionAgent(tools=[get_weather], llm=llm, system_prompt="Be brief.").run(HELLO)

        assert TEXT in str(asyncio.run(run())) and called()

    def structured(self, llm, kinds=(Order, Small)):
        for kind in kinds:
            assert isinstance(llm.as_structured_llm(kind).chat([ChatMessage(role="user", content=HELLO)]).raw, kind)

    def check_like(self):
        self.plain(self.like())

    def check_like_tools(self):
        self.tools(self.like())

    def check_like_structured(self):
        self.structured(self.like())
        self.structured(self.like(should_use_structured_outputs=True))

    def check_like_errors(self):
        raised(openai.NotFoundError, lambda: self.like("nobody").complete(HELLO))

    def check_ollama(self):
        self.plain(self.ollama())

    def check_ollama_tools(self):
        self.tools(self.ollama())

    def check_ollama_structured(self):
        self.structured(self.ollama())


main(f"llama-index-core {importlib.metadata.version('llama-index-core')}", LlamaIndex)
