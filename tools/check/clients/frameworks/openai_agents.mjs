// OpenAI's Agents SDK for JavaScript on chat completions and responses.
import assert from "node:assert/strict";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { base, key, main, model } from "./checks.mjs";
import { City, Order, Small, called, getWeather, hello, text } from "./shapes.mjs";

setTracingDisabled(true);
const client = new OpenAI({ baseURL: base + "/v1", apiKey: key, maxRetries: 0 });
const weather = tool({ name: "get_weather", description: "The weather of a city.", parameters: City, execute: getWeather });
const runner = new Runner();
const checks = {};

for (const [name, Model] of Object.entries({ chat: OpenAIChatCompletionsModel, responses: OpenAIResponsesModel })) {
  const agent = (more = {}, id = model) => new Agent({ name: "a", instructions: "Be brief.", model: new Model(client, id), modelSettings: { maxTokens: 400 }, ...more });
  checks[name] = async () => {
    const first = await runner.run(agent(), hello);
    assert.equal(first.finalOutput, text);
    assert.equal((await runner.run(agent(), [...first.history, { role: "user", content: "Again." }])).finalOutput, text);
    const stream = await runner.run(agent(), hello, { stream: true });
    let whole = "";
    for await (const part of stream.toTextStream()) whole += part;
    assert.equal(whole, text);
  };
  checks[name + "Tools"] = async () => {
    assert.equal((await runner.run(agent({ tools: [weather] }), hello)).finalOutput, text);
    assert.ok(called());
  };
  checks[name + "Structured"] = async () => {
    for (const outputType of [Order, Small]) outputType.parse((await runner.run(agent({ outputType }), hello)).finalOutput);
  };
  checks[name + "Errors"] = () => assert.rejects(runner.run(agent({}, "nobody"), hello), OpenAI.NotFoundError);
}

await main("@openai/agents", "chat and responses", checks);
