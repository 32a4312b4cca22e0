// The official ollama client for JavaScript, unmodified, against Ollama's API. A schema forces the answer: also a call,
// which is JSON in the form of chat.jinja.
import assert from "node:assert/strict";
import { Ollama } from "ollama";
import { z } from "zod";
import { Person, base, city, key, main, model, thought } from "./checks.mjs";

const client = new Ollama({ host: base, headers: { Authorization: "Bearer " + key } });
const messages = [{ role: "user", content: "Say hello." }];
const options = { temperature: 0, num_predict: 12 };
const chat = (more) => client.chat({ model, messages, options, ...more });
const weather = { type: "function", function: { name: "get_weather", description: "The weather of a city.", parameters: city } };
const call = { const: { name: "get_weather", parameters: { city: "Paris" } } };

const checks = {
  async chat() {
    const answer = await chat();
    assert.ok(answer.message.content && answer.done && answer.eval_count <= 12 && answer.prompt_eval_count > 0);
  },
  async chatStream() {
    let text = "";
    for await (const part of await chat({ stream: true })) text += part.message.content;
    assert.equal(text, (await chat()).message.content);
  },
  async generate() {
    const whole = await client.generate({ model, prompt: "Once upon a time", options });
    let text = "";
    for await (const part of await client.generate({ model, prompt: "Once upon a time", options, stream: true })) text += part.response;
    assert.ok(text);
    assert.equal(text, whole.response);
  },
  async format() {
    Person.parse(JSON.parse((await chat({ format: z.toJSONSchema(Person), options: { num_predict: 200 } })).message.content));
  },
  async tools() {
    const first = await chat({ tools: [weather], format: call, options: { num_predict: 100 } });
    assert.deepEqual(first.message.tool_calls[0].function.arguments, { city: "Paris" });
    const after = [...messages, first.message, { role: "tool", tool_name: "get_weather", content: "sunny" }];
    assert.equal((await chat({ messages: after, tools: [weather], format: { const: "sunny" } })).message.content, '"sunny"');
  },
  async toolsStream() {
    const calls = [];
    for await (const part of await chat({ tools: [weather], format: call, options: { num_predict: 100 }, stream: true })) calls.push(...(part.message.tool_calls ?? []));
    assert.deepEqual(calls.map((c) => c.function.arguments), [{ city: "Paris" }]);
  },
  async think() {
    const { message } = await chat({ think: true, format: { const: thought + "</think>hello" }, options: { num_predict: 60 } });
    assert.deepEqual([message.thinking, message.content], ['"' + thought, 'hello"']);
  },
  async models() {
    assert.deepEqual((await client.list()).models.map((m) => m.model), [model + ":latest"]);
    assert.ok((await client.show({ model })).capabilities.includes("tools"));
    assert.deepEqual((await client.ps()).models.map((m) => m.model), [model + ":latest"]);
    assert.ok((await client.version()).version);
  },
  async embed() {
    assert.equal((await client.embed({ model, input: ["a dog", "the dog"] })).embeddings.length, 2);
  },
  async abort() {
    const stream = await chat({ stream: true, options: { num_predict: 400 } });
    stream.abort();
    assert.ok((await chat()).message.content);
  },
  async errors() {
    await assert.rejects(chat({ model: "nobody" }), (e) => e.status_code === 404);
    await assert.rejects(chat({ options: { temperature: -1 } }), (e) => e.status_code === 400 && /temperature/.test(e.error));
  },
};

await main("ollama", "Ollama's API", checks);
