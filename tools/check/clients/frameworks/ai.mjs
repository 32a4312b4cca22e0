// Vercel's AI SDK with its providers of OpenAI (responses and chat completions), OpenAI-compatible services, Anthropic and
// Ollama.
import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, Output, embedMany, generateText, stepCountIs, streamText, tool } from "ai";
import { createOllama } from "ollama-ai-provider-v2";
import { base, key, main, model } from "./checks.mjs";
import { City, Order, Small, called, getWeather, hello, text } from "./shapes.mjs";

const openai = createOpenAI({ baseURL: base + "/v1", apiKey: key });
const compatible = createOpenAICompatible({ name: "service", baseURL: base + "/v1", apiKey: key, includeUsage: true, supportsStructuredOutputs: true });
const anthropic = createAnthropic({ baseURL: base + "/v1", apiKey: key });
const ollama = createOllama({ baseURL: base + "/api", headers: { Authorization: "Bearer " + key } });
const limits = { maxRetries: 0, maxOutputTokens: 400 };
const tools = { get_weather: tool({ description: "The weather of a city.", inputSchema: City, execute: getWeather }) };

async function plain(model) {
  const answer = await generateText({ model, prompt: hello, ...limits });
  assert.ok(answer.text.includes(text) && answer.usage.outputTokens > 0, answer.text);
  const turns = [{ role: "system", content: "Be brief." }, { role: "user", content: hello }, { role: "assistant", content: "Hello." }, { role: "user", content: "Again." }];
  assert.ok((await generateText({ model, messages: turns, allowSystemInMessages: true, ...limits })).text.includes(text));
  let whole = "";
  for await (const part of streamText({ model, prompt: hello, ...limits }).textStream) whole += part;
  assert.ok(whole.includes(text), whole);
}

async function withTools(model) {
  const answer = await generateText({ model, prompt: hello, tools, stopWhen: stepCountIs(3), ...limits });
  assert.ok(called() && answer.text.includes(text) && answer.steps.length === 2, answer.text);
  const stream = streamText({ model, prompt: hello, tools, stopWhen: stepCountIs(3), ...limits });
  assert.ok((await stream.text).includes(text) && called());
}

async function structured(model, schemas = [Order, Small]) {
  for (const schema of schemas) {
    schema.parse((await generateText({ model, prompt: hello, output: Output.object({ schema }), ...limits })).output);
    const stream = streamText({ model, prompt: hello, output: Output.object({ schema }), ...limits });
    let last;
    for await (last of stream.partialOutputStream);
    schema.parse(last);
  }
}

async function refused(provider) {
  await assert.rejects(generateText({ model: provider("nobody"), prompt: hello, ...limits }), (e) => APICallError.isInstance(e) && e.statusCode === 404);
}

const checks = {};
for (const [name, provider] of Object.entries({ responses: openai, chat: openai.chat, compatible, anthropic, ollama })) {
  checks[name] = () => plain(provider(model));
  checks[name + "Tools"] = () => withTools(provider(model));
  checks[name + "Structured"] = () => structured(provider(model), provider === anthropic ? [Order] : [Order, Small]);
  checks[name + "Errors"] = () => refused(provider);
}
checks.embeddings = async () => {
  const { embeddings } = await embedMany({ model: openai.embedding(model), values: ["a", "b"], maxRetries: 0 });
  assert.equal(embeddings.length, 2);
};

await main("ai", "providers openai, openai-compatible, anthropic and ollama-ai-provider-v2", checks);
