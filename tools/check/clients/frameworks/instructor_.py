# /// script
# dependencies = ["instructor[anthropic]==1.17.0"]
# ///
"""instructor on OpenAI's and Anthropic's clients, in each of its modes that a text model can serve."""

import importlib.metadata

import anthropic
import instructor
import openai

from checks import Suite, main, raised
from shapes import HELLO, Order, Small

MESSAGES = [{"role": "user", "content": HELLO}]


class Instructor(Suite):
    def openai(self, mode):
        client = openai.OpenAI(base_url=self.base + "/v1", api_key=self.key, max_retries=0)
        return instructor.from_openai(client, mode=mode)

    def ask(self, client, kind, **more):
        return client.chat.completions.create(**{"model": self.model, "messages": MESSAGES, "response_model": kind, "max_retries": 0, "max_tokens": 400, **more})

    def modes(self, *names, kinds=(Order, Small)):
        for name in names:
            for kind in kinds:
                assert isinstance(self.ask(self.openai(getattr(instructor.Mode, name)), kind), kind), (name, kind)

    def check_tools(self):
        self.modes("TOOLS")

    def check_tools_strict(self):
        self.modes("TOOLS_STRICT")

    def check_json_schema(self):
        self.modes("JSON_SCHEMA")

    def check_responses(self):
        client = self.openai(instructor.Mode.RESPONSES_TOOLS)
        for kind in (Order, Small):
            answer = client.responses.create(model=self.model, input=HELLO, response_model=kind, max_retries=0, max_output_tokens=400)
            assert isinstance(answer, kind)

    def check_list(self):
        answer = self.ask(self.openai(instructor.Mode.TOOLS), list[Small], max_tokens=8000)
        assert all(isinstance(item, Small) for item in answer)

    def check_partial(self):
        client = self.openai(instructor.Mode.TOOLS)
        last = None
        for last in client.chat.completions.create_partial(model=self.model, messages=MESSAGES, response_model=Small, max_retries=0, max_tokens=400):
            pass
        assert len(last.code) == 5 and last.tags

    def check_anthropic(self):
        client = instructor.from_anthropic(anthropic.Anthropic(base_url=self.base, api_key=self.key, max_retries=0), mode=instructor.Mode.ANTHROPIC_TOOLS)
        for kind in (Order, Small):
            assert isinstance(client.messages.create(model=self.model, messages=MESSAGES, response_model=kind, max_retries=0, max_tokens=400), kind)

    def check_errors(self):
        raised(Exception, lambda: self.ask(self.openai(instructor.Mode.TOOLS), Order, model="nobody"))


main(f"instructor {importlib.metadata.version('instructor')}", Instructor)
