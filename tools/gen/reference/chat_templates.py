"""Renders conversations with chat templates by transformers and writes the texts, or that an error is raised.

    chat_templates.py TEMPLATE.jinja… > ../../../runtime/text/chat/testdata/rendered.json

The templates in testdata are short forms of published ones, with the same constructs. To check published ones, put them
into DIR/templates, write DIR/rendered.json and run: go test ./runtime/text/chat -rendered DIR/rendered.json
"""

import datetime
import json
import pathlib
import sys

from transformers.utils import chat_template_utils

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a <place> & time.", "parameters": {
        "type": "object", "properties": {
            "place": {"type": "string", "description": "City, e.g. \"Zürich\""},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "days": {"type": "integer", "minimum": 0, "maximum": 18446744073709551615},
            "items": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "number", "default": 1.0}}}}},
        "required": ["place"]}}},
    {"type": "function", "function": {"name": "nothing", "description": "", "parameters": {"type": "object", "properties": {}}}},
]
SYSTEM = {"role": "system", "content": "Be brief.  \nSpeak “English” <b>& 漢字</b>."}
USER = {"role": "user", "content": "  Hi there 🙂, what's \"up\"? \\n {{ 1 }} {% x %}\n"}
ANSWER = {"role": "assistant", "content": "Fine.\n\n```py\nprint('x')\n```"}
MORE = {"role": "user", "content": "And in Zürich?"}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function", "function": {
    "name": "get_weather", "arguments": {"place": "Zürich", "days": 3, "x": [1.5, None, True, {"y": "a'b"}]}}}]}
NULL_CALL = {**CALL, "content": None}
TEXT_CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "call00001", "type": "function", "function": {
    "name": "get_weather", "arguments": "{\"place\": \"Zürich\", \"days\": 3}"}}]}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"t\": 21.5, \"sky\": \"clear\"}"}
CALLS = {"role": "assistant", "content": "Let me look.", "reasoning_content": "They ask\n about two.", "tool_calls": [
    {"id": "functions.get_weather:0", "type": "function", "function": {
        "name": "get_weather", "arguments": {"place": "it's\n\"Zürich\" <b>", "days": 3, "far": True, "items": [{"k": 1.5}, None], "o": {"k": False}}}},
    {"id": "functions.nothing:1", "type": "function", "function": {"name": "nothing", "arguments": {}}}]}
RESULTS = [{"role": "tool", "tool_call_id": "functions.get_weather:0", "content": "21 °C"}, {"role": "tool", "tool_call_id": "functions.nothing:1", "content": ""}]
THOUGHT = {"role": "assistant", "content": "<think>\nHm, they\n ask.\n</think>\n\nSunny."}
PARTS = {"role": "user", "content": [{"type": "text", "text": " Look: "}, {"type": "text", "text": "there"}]}

CONVERSATIONS = {
    "user": dict(messages=[USER]),
    "system": dict(messages=[SYSTEM, USER]),
    "turns": dict(messages=[SYSTEM, USER, ANSWER, MORE]),
    "no prompt": dict(messages=[USER, ANSWER], add_generation_prompt=False),
    "thought": dict(messages=[USER, THOUGHT, MORE]),
    "thought last": dict(messages=[USER, THOUGHT], add_generation_prompt=False),
    "reasoning key": dict(messages=[USER, {**ANSWER, "reasoning_content": "\nwhy not\n"}], add_generation_prompt=False),
    "tools": dict(messages=[SYSTEM, USER], tools=TOOLS),
    "call": dict(messages=[USER, CALL, RESULT], tools=TOOLS),
    "call null": dict(messages=[SYSTEM, USER, NULL_CALL, RESULT, ANSWER, MORE], tools=TOOLS),
    "call text": dict(messages=[USER, TEXT_CALL, RESULT], tools=TOOLS),
    "two results": dict(messages=[USER, CALL, RESULT, RESULT, MORE], tools=TOOLS[:1]),
    "reasoning call": dict(messages=[SYSTEM, USER, CALLS, *RESULTS], tools=TOOLS),
    "reasoning turns": dict(messages=[USER, CALLS, *RESULTS, {**ANSWER, "reasoning_content": "Now I know."}, MORE], tools=TOOLS),
    "thinking key": dict(messages=[USER, {**ANSWER, "thinking": "why not"}], add_generation_prompt=False),
    "no thinking": dict(messages=[SYSTEM, USER], enable_thinking=False),
    "parts": dict(messages=[PARTS]),
    "documents": dict(messages=[USER], documents=[{"title": "T", "text": "Some text."}, {"title": "U", "text": "More \"text\"."}]),
    "wrong order": dict(messages=[ANSWER, USER]),
    "variables": dict(messages=[USER], enable_thinking=False, reasoning_effort="high", controls={"length": "long"}, date_string="1 May 2025"),
    "continue": dict(messages=[USER, {"role": "assistant", "content": "It is "}], add_generation_prompt=False, continue_final_message=True),
    "foreign role": dict(messages=[USER, {"role": "narrator", "content": "Later."}]),
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 3, 4, 5, 6, 7, 89)


def main():
    chat_template_utils.datetime = FixedTime
    out = []
    for path in map(pathlib.Path, sys.argv[1:]):
        source = path.read_text(encoding="utf-8")
        for name, conversation in CONVERSATIONS.items():
            args = {"add_generation_prompt": True, "tools": None, "documents": None, **conversation}
            case = {"template": path.stem, "conversation": name}
            try:
                messages = json.loads(json.dumps(args.pop("messages")))
                rendered, _ = chat_template_utils.render_jinja_template([messages], chat_template=source, **args, **TOKENS)
                case["text"] = rendered[0]
            except Exception as e:
                case["error"] = f"{type(e).__name__}: {e}"[:160]
            out.append(case)
    json.dump({"conversations": CONVERSATIONS, "tokens": TOKENS, "cases": out}, sys.stdout, ensure_ascii=False, indent=1)
    print()


main()
