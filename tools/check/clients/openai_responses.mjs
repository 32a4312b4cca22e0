// The official openai client for JavaScript, unmodified, against the Responses API.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { Person, base, call, city, key, main, model, think, thought } from "./checks.mjs";

const client = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 0 });
const api = client.responses;
const create = (more) => api.create({ model, input: "Say hello.", max_output_tokens: 12, temperature: 0, ...more });
const forced = (guided_regex, more) => create({ guided_regex, max_output_tokens: 100, ...more });
const weather = { type: "function", name: "get_weather", parameters: city, strict: true };
const thinking = { max_output_tokens: 100, guided_regex: think + "hello", chat_template_kwargs: { enable_thinking: true } };

const checks = {
  async create() {
    const answer = await create({ instructions: "You are brief.", metadata: { a: "b" } });
    assert.equal(answer.object, "response");
    assert.ok(answer.output_text);
    assert.deepEqual(answer.metadata, { a: "b" });
    assert.equal(answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens);
  },
  async stream() {
    const whole = await create();
    let text = "";
    let last;
    for await (last of await create({ stream: true })) if (last.type === "response.output_text.delta") text += last.delta;
    assert.equal(text, whole.output_text);
    assert.equal(last.type, "response." + whole.status);
    assert.equal(last.response.usage.output_tokens, whole.usage.output_tokens);
  },
  async streamHelper() {
    const stream = api.stream({ model, input: "Say hello.", guided_regex: "hello" });
    let text = "";
    stream.on("response.output_text.delta", (event) => (text += event.delta));
    assert.equal((await stream.finalResponse()).output_text, "hello");
    assert.equal(text, "hello");
  },
  async parse() {
    const answer = await api.parse({ model, input: "Who?", max_output_tokens: 200, text: { format: zodTextFormat(Person, "person") } });
    Person.parse(answer.output_parsed);
  },
  async tools() {
    const first = await forced(call, { tools: [weather] });
    const use = first.output.at(-1);
    assert.deepEqual([use.type, use.name, JSON.parse(use.arguments)], ["function_call", "get_weather", { city: "Paris" }]);
    const output = { type: "function_call_output", call_id: use.call_id, output: "sunny" };
    const items = [{ role: "user", content: "Say hello." }, ...first.output, output];
    assert.equal((await forced("It is sunny", { input: items, tools: [weather] })).output_text, "It is sunny");
    assert.equal((await forced("It is sunny", { input: [output], tools: [weather], previous_response_id: first.id })).output_text, "It is sunny");
  },
  async toolChoice() {
    for (const tool_choice of ["required", { type: "function", name: "get_weather" }]) {
      const answer = await create({ tools: [weather], tool_choice, max_output_tokens: 200 });
      assert.deepEqual(answer.output.map((item) => item.type), ["function_call"]);
    }
  },
  async toolsParse() {
    const tools = [zodResponsesFunction({ name: "add", parameters: Person })];
    Person.parse((await api.parse({ model, input: "Who?", max_output_tokens: 200, tools, tool_choice: "required" })).output[0].parsed_arguments);
  },
  async toolsStream() {
    let text = "";
    for await (const event of await forced(call, { tools: [weather], stream: true })) if (event.type === "response.function_call_arguments.delta") text += event.delta;
    assert.deepEqual(JSON.parse(text), { city: "Paris" });
  },
  async reasoning() {
    const answer = await create({ ...thinking, reasoning: { effort: "low" } });
    assert.deepEqual(answer.output.map((item) => item.type), ["reasoning", "message"]);
    assert.equal(answer.output[0].content[0].text, thought);
    assert.equal((await create({ ...thinking, reasoning: { summary: "auto" } })).output[0].summary[0].text, thought);
  },
  async previous() {
    const first = await create();
    const second = await create({ input: "Again.", previous_response_id: first.id });
    assert.equal(second.previous_response_id, first.id);
    assert.ok(second.usage.input_tokens > first.usage.input_tokens);
  },
  async stored() {
    const answer = await create();
    assert.equal((await api.retrieve(answer.id)).output_text, answer.output_text);
    for await (const item of api.inputItems.list(answer.id)) assert.equal(item.content[0].text, "Say hello.");
    await api.delete(answer.id);
    await assert.rejects(api.retrieve(answer.id), OpenAI.NotFoundError);
  },
  async inputTokens() {
    assert.equal((await api.inputTokens.count({ model, input: "Say hello." })).input_tokens, (await create()).usage.input_tokens);
  },
  async abort() {
    const stream = await create({ stream: true, max_output_tokens: 400, ignore_eos: true });
    for await (const _ of stream) {
      stream.controller.abort();
      break;
    }
    assert.ok((await create()).output_text);
  },
  async errors() {
    await assert.rejects(create({ model: "nobody" }), OpenAI.NotFoundError);
    await assert.rejects(create({ temperature: -1 }), (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature" && e.type === "invalid_request_error");
    await assert.rejects(create({ stream: true, input: [] }), OpenAI.BadRequestError);
  },
};

await main("openai", "responses", checks);
