# /// script
# dependencies = ["langchain-openai==1.7.4", "langchain-anthropic==1.7.10", "langchain-ollama==1.1.0"]
# ///
"""LangChain's chat models of OpenAI (chat completions and responses), Anthropic and Ollama."""

import asyncio
import importlib.metadata

import anthropic
import ollama
import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from checks import Suite, main, raised
from shapes import HELLO, TEXT, Order, Small, called, get_weather


class Langchain(Suite):
    def chat(self, **more):
        return ChatOpenAI(model=more.pop("model", self.model), base_url=self.base + "/v1", api_key=self.key, max_retries=0, **more)

    def responses(self, **more):
        return self.chat(use_responses_api=True, **more)

    def anthropic(self, **more):
        return ChatAnthropic(model=more.pop("model", self.model), base_url=self.base, api_key=self.key, max_retries=0, max_tokens=400, **more)

    def ollama(self, **more):
        return ChatOllama(model=more.pop("model", self.model), base_url=self.base, num_predict=400, **more)

    def plain(self, model):
        answer = model.invoke(HELLO)
        assert TEXT in answer.text and answer.usage_metadata["output_tokens"] > 0 and not answer.tool_calls
        assert TEXT in "".join(chunk.text for chunk in model.stream(HELLO))
        assert TEXT in asyncio.run(model.ainvoke(HELLO)).text
        turns = [SystemMessage("Be brief."), HumanMessage(HELLO), AIMessage("Hello."), HumanMessage("Again.")]
        assert TEXT in model.invoke(turns).text

    def tools(self, model):
        bound = model.bind_tools([tool(get_weather)])
        for answer in (bound.invoke(HELLO), sum_chunks(bound.stream(HELLO))):
            call = answer.tool_calls[0]
            assert call["name"] == "get_weather" and call["args"] == {"city": "Paris"}, answer
            result = ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"])
            last = bound.invoke([HumanMessage(HELLO), answer, result])
            assert called() and TEXT in last.text and not last.tool_calls

    def forced(self, model):
        answer = model.bind_tools([tool(get_weather), Small], tool_choice="Small").invoke(HELLO)
        assert answer.tool_calls[0]["name"] == "Small"

    def structured(self, model, methods, kinds=(Order, Small)):
        for method in methods:
            for kind in kinds:
                assert isinstance(model.with_structured_output(kind, method=method).invoke(HELLO), kind), (method, kind)

    def check_chat(self):
        self.plain(self.chat())

    def check_chat_tools(self):
        self.tools(self.chat())
        self.forced(self.chat(max_tokens=400))

    def check_chat_structured(self):
        self.structured(self.chat(max_tokens=400), ["json_schema", "function_calling"])

    def check_responses(self):
        self.plain(self.responses())

    def check_responses_tools(self):
        self.tools(self.responses())
        self.forced(self.responses(max_tokens=400))

    def check_responses_structured(self):
        self.structured(self.responses(max_tokens=400), ["json_schema", "function_calling"])

    def check_responses_previous(self):
        model = self.responses(use_previous_response_id=True)
        first = model.invoke(HELLO)
        assert TEXT in model.invoke([HumanMessage(HELLO), first, HumanMessage("Again.")]).text

    def check_anthropic(self):
        self.plain(self.anthropic())

    def check_anthropic_tools(self):
        self.tools(self.anthropic())
        self.forced(self.anthropic())

    def check_anthropic_structured(self):
        self.structured(self.anthropic(), ["json_schema", "function_calling"], [Order])

    def check_ollama(self):
        self.plain(self.ollama(client_kwargs={"headers": {"Authorization": "Bearer " + self.key}}))

    def check_ollama_tools(self):
        self.tools(self.ollama())

    def check_ollama_structured(self):
        self.structured(self.ollama(), ["json_schema"])

    def check_embeddings(self):
        vectors = OpenAIEmbeddings(model=self.model, base_url=self.base + "/v1", api_key=self.key, check_embedding_ctx_length=False).embed_documents(["a", "b"])
        assert len(vectors) == 2
        again = OllamaEmbeddings(model=self.model, base_url=self.base).embed_documents(["a", "b"])
        assert max(abs(x - y) for a, b in zip(vectors, again) for x, y in zip(a, b)) < 1e-6

    def check_errors(self):
        raised(openai.NotFoundError, lambda: self.chat(model="nobody").invoke(HELLO))
        raised(openai.BadRequestError, lambda: self.responses(temperature=-1).invoke(HELLO))
        raised(anthropic.NotFoundError, lambda: self.anthropic(model="nobody").invoke(HELLO))
        raised(ollama.ResponseError, lambda: self.ollama(model="nobody").invoke(HELLO))


def sum_chunks(chunks):
    whole = None
    for chunk in chunks:
        whole = chunk if whole is None else whole + chunk
    return whole


main(f"langchain-openai {importlib.metadata.version('langchain-openai')}, -anthropic {importlib.metadata.version('langchain-anthropic')}, -ollama {importlib.metadata.version('langchain-ollama')}", Langchain)
