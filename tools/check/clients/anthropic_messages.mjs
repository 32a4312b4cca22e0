// The official anthropic client for JavaScript, unmodified, against the Messages API.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { base, call, city, key, main, model, think, thought } from "./checks.mjs";

const client = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0 });
const messages = [{ role: "user", content: "Say hello." }];
const create = (more) => client.messages.create({ model, messages, max_tokens: 12, ...more });
const forced = (guided_regex, more) => create({ guided_regex, max_tokens: 100, ...more });
const weather = { name: "get_weather", description: "The weather of a city.", input_schema: city };
const thinking = { type: "enabled", budget_tokens: 1024 };
const Pet = z.object({ kind: z.enum(["cat", "dog"]), small: z.boolean() }); // the client leaves lengths of texts out of the schema

const checks = {
  async create() {
    const answer = await create({ system: "You are brief." });
    assert.deepEqual([answer.type, answer.role, answer.content[0].type], ["message", "assistant", "text"]);
    assert.ok(answer.content[0].text && answer.usage.output_tokens <= 12);
  },
  async stopReasons() {
    assert.equal((await create({ max_tokens: 3, ignore_eos: true })).stop_reason, "max_tokens");
    assert.equal((await forced("done")).stop_reason, "end_turn");
    const stopped = await forced("hello", { stop_sequences: ["ll"] });
    assert.deepEqual([stopped.stop_reason, stopped.stop_sequence, stopped.content[0].text], ["stop_sequence", "ll", "he"]);
  },
  async stream() {
    let text = "";
    for await (const event of await forced("hello", { stream: true })) if (event.type === "content_block_delta") text += event.delta.text;
    assert.equal(text, "hello");
  },
  async streamHelper() {
    const stream = client.messages.stream({ model, messages, max_tokens: 12, temperature: 0 });
    let text = "";
    stream.on("text", (delta) => (text += delta));
    const last = await stream.finalMessage();
    assert.equal(text, last.content[0].text);
    assert.equal(text, (await create({ temperature: 0 })).content[0].text);
  },
  async tools() {
    const first = await forced(call, { tools: [weather] });
    const use = first.content.at(-1);
    assert.deepEqual([first.stop_reason, use.name, use.input], ["tool_use", "get_weather", { city: "Paris" }]);
    const after = [...messages, { role: "assistant", content: first.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "sunny" }] }];
    assert.equal((await forced("It is sunny", { messages: after, tools: [weather] })).content[0].text, "It is sunny");
  },
  async toolChoice() {
    for (const tool_choice of [{ type: "any" }, { type: "tool", name: "get_weather" }]) {
      const answer = await create({ tools: [weather], tool_choice, max_tokens: 200 });
      assert.deepEqual(answer.content.map((b) => b.type), ["tool_use"]);
    }
  },
  async toolsStream() {
    const last = await client.messages.stream({ model, messages, max_tokens: 100, tools: [weather], guided_regex: call }).finalMessage();
    assert.deepEqual(last.content.at(-1).input, { city: "Paris" });
  },
  async thinking() {
    const answer = await forced(think + "hello", { thinking });
    assert.deepEqual([answer.content[0].thinking, answer.content[1].text], [thought, "hello"]);
    const last = await client.messages.stream({ model, messages, max_tokens: 100, thinking, guided_regex: think + "hello" }).finalMessage();
    assert.deepEqual([last.content[0].thinking, last.content[1].text], [thought, "hello"]);
  },
  async parse() {
    const answer = await client.messages.parse({ model, messages, max_tokens: 200, output_config: { format: zodOutputFormat(Pet) } });
    Pet.parse(answer.parsed_output);
  },
  async countTokens() {
    const usage = (await create()).usage;
    assert.equal((await client.messages.countTokens({ model, messages })).input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  },
  async abort() {
    const stream = await create({ stream: true, max_tokens: 400, ignore_eos: true });
    for await (const _ of stream) {
      stream.controller.abort();
      break;
    }
    assert.ok((await create()).content[0].text);
  },
  async errors() {
    await assert.rejects(create({ model: "nobody" }), (e) => e instanceof Anthropic.NotFoundError && e.error.error.type === "not_found_error");
    await assert.rejects(create({ max_tokens: -1 }), Anthropic.BadRequestError);
    await assert.rejects(create({ stream: true, messages: [] }), Anthropic.BadRequestError);
    await assert.rejects(new Anthropic({ baseURL: base, apiKey: "wrong", maxRetries: 0 }).messages.create({ model, messages, max_tokens: 1 }), Anthropic.AuthenticationError);
  },
};

await main("@anthropic-ai/sdk", "messages", checks);
