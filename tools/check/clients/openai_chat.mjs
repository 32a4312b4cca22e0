// The official openai client for JavaScript, unmodified, against a running service.
//
//   node suite.mjs BASE_URL [KEY]
//
// Prints one line a check and exits 1 if any failed.
import assert from "node:assert/strict";
import OpenAI from "openai";

const base = process.argv[2].replace(/\/$/, "");
const client = new OpenAI({ baseURL: base + "/v1", apiKey: process.argv[3] ?? "none", maxRetries: 0 });
const messages = [{ role: "user", content: "Say hello." }];
const model = (await client.models.list()).data[0].id;
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
  async schema() {
    const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"], additionalProperties: false };
    const answer = await chat({ max_tokens: 40, response_format: { type: "json_schema", json_schema: { name: "a", schema, strict: true } } });
    if (answer.choices[0].finish_reason === "stop") assert.equal(typeof JSON.parse(answer.choices[0].message.content).ok, "boolean");
  },
  async tools() {
    const parameters = { type: "object", properties: { n: { type: "integer", maximum: 9, minimum: 0 } }, required: ["n"], additionalProperties: false };
    const answer = await chat({ max_tokens: 60, tools: [{ type: "function", function: { name: "add", parameters } }], tool_choice: "required" });
    const call = answer.choices[0].message.tool_calls?.[0];
    if (answer.choices[0].finish_reason === "tool_calls") assert.ok(Number.isInteger(JSON.parse(call.function.arguments).n));
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

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log("ok    " + name);
  } catch (error) {
    failed++;
    console.log("FAIL  " + name + "\n" + (error.stack ?? error));
  }
}
console.log(`openai for JavaScript: ${failed} failed`);
process.exit(failed ? 1 : 0);
