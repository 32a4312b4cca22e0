// The official openai client for JavaScript, unmodified, against chat completions, completions and embeddings.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import { Person, base, call, city, key, main, model, think, thought } from "./checks.mjs";

const client = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 0 });
const weather = { type: "function", function: { name: "get_weather", parameters: city } };
const messages = [{ role: "user", content: "Say hello." }];
const chat = (more) => client.chat.completions.create({ model, messages, max_tokens: 12, temperature: 0, ...more });

const checks = {
  async chat() {
    const answer = await chat();
    assert.equal(answer.object, "chat.completion");
    assert.ok(answer.choices[0].message.content);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  },
  async stream() {
    let text = "", finish = null, usage = null;
    for await (const chunk of await chat({ stream: true, stream_options: { include_usage: true } })) {
      usage = chunk.usage ?? usage;
      for (const choice of chunk.choices) {
        text += choice.delta.content ?? "";
        finish = choice.finish_reason ?? finish;
      }
    }
    const whole = await chat();
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },
  async streamHelper() {
    const stream = client.chat.completions.stream({ model, messages, max_tokens: 6, temperature: 0 });
    let text = "";
    stream.on("content", (delta) => (text += delta));
    await stream.done();
    assert.equal(text, (await chat({ max_tokens: 6 })).choices[0].message.content);
  },
  async abort() {
    const stream = await chat({ stream: true, max_tokens: 2000 });
    for await (const _ of stream) {
      stream.controller.abort();
      break;
    }
    assert.ok((await chat()).choices[0].message.content);
  },
  async completions() {
    const answer = await client.completions.create({ model, prompt: ["Once", "There"], max_tokens: 4, n: 2, temperature: 0, logprobs: 2, echo: true });
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2, 3]);
    assert.equal(answer.choices[0].logprobs.token_logprobs[0], null);
  },
  async logprobs() {
    const answer = await chat({ logprobs: true, top_logprobs: 2 });
    assert.equal(answer.choices[0].logprobs.content.length, answer.usage.completion_tokens);
  },
  async parse() {
    const answer = await client.chat.completions.parse({ model, messages, max_tokens: 200, response_format: zodResponseFormat(Person, "person") });
    Person.parse(answer.choices[0].message.parsed);
  },
  async reasoning() {
    const { message } = (await chat({ max_tokens: 60, chat_template_kwargs: { enable_thinking: true }, guided_regex: think + "hello" })).choices[0];
    assert.deepEqual([message.reasoning_content, message.content], [thought, "hello"]);
  },
  async tools() {
    const { message, finish_reason } = (await chat({ max_tokens: 100, tools: [weather], guided_regex: call })).choices[0];
    assert.equal(finish_reason, "tool_calls");
    assert.equal(message.tool_calls[0].function.name, "get_weather");
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: "Paris" });
    const after = [...messages, message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: "sunny" }];
    assert.equal((await chat({ messages: after, tools: [weather], guided_regex: "It is sunny" })).choices[0].message.content, "It is sunny");
  },
  async toolChoice() {
    for (const tool_choice of ["required", { type: "function", function: { name: "get_weather" } }]) {
      const answer = (await chat({ max_tokens: 200, tools: [weather], tool_choice })).choices[0];
      assert.deepEqual(Object.keys(JSON.parse(answer.message.tool_calls[0].function.arguments)), ["city"]);
    }
  },
  async toolsParse() {
    const answer = await client.chat.completions.parse({ model, messages, max_tokens: 200, tools: [zodFunction({ name: "add", parameters: Person })], tool_choice: "required" });
    Person.parse(answer.choices[0].message.tool_calls[0].function.parsed_arguments);
  },
  async runTools() {
    const cities = [];
    const run = client.chat.completions.runTools({
      model, messages, max_tokens: 200, tool_choice: { type: "function", function: { name: "get_weather" } },
      tools: [{ type: "function", function: { name: "get_weather", parameters: city, parse: JSON.parse, function: (args) => cities.push(args.city) && "sunny" } }],
    });
    await run.done();
    assert.equal(cities.length, 1);
  },
  async embeddings() {
    try {
      const answer = await client.embeddings.create({ model, input: ["a", "b"] });
      assert.equal(answer.data.length, 2);
      assert.ok(answer.data[0].embedding.length > 1);
    } catch (error) {
      if (!(error instanceof OpenAI.BadRequestError && /does not support embeddings/.test(error.message))) throw error;
    }
  },
  async errors() {
    await assert.rejects(chat({ model: "nobody" }), OpenAI.NotFoundError);
    await assert.rejects(chat({ temperature: -1 }), (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature" && e.type === "invalid_request_error");
  },
};

await main("openai", "chat and completions", checks);
