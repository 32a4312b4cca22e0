// The base of the suites of the JavaScript clients.
//
//   node SUITE.mjs BASE_URL [KEY]
//
// A suite is an object of functions, the checks. Each prints one line. The last line, which begins with ===, has the
// counts. The exit code is 1 if a check failed.
import { readFileSync } from "node:fs";
import { z } from "zod";

export const base = process.argv[2].replace(/\/$/, "");
export const key = process.argv[3] ?? "none";
export const model = (await (await fetch(base + "/v1/models", { headers: { Authorization: "Bearer " + key } })).json()).data[0].id;
export const city = { type: "object", properties: { city: { type: "string", maxLength: 20 } }, required: ["city"], additionalProperties: false };
export const Person = z.object({ name: z.string().max(20), age: z.number().int().min(0).max(150) });
// Regular expressions for whole answers, in the form of the calls of chat.jinja: any decoder writes what they match.
export const call = String.raw`\{"name": "get_weather", "parameters": \{"city": "Paris"\}\}`;
export const thought = "some thought";
export const think = thought + "</think>"; // the template has written <think>

export async function main(name, title, checks) {
  const version = JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
  let failed = 0;
  for (const [check, run] of Object.entries(checks)) {
    try {
      await run();
      console.log("ok    " + check);
    } catch (error) {
      failed++;
      const where = /\w+\.mjs:\d+/.exec((error.stack ?? "").split("\n").filter((line) => !line.includes("node_modules") && !line.includes("checks.mjs")).join("\n"))?.[0] ?? "";
      console.log(`FAIL  ${check}: ${where}: ${error.name}: ${String(error.message ?? error).split(/\s+/).join(" ").slice(0, 600)}`);
    }
  }
  const total = Object.keys(checks).length;
  console.log(`=== ${name} ${version} for JavaScript, ${title}: ${total - failed} of ${total} passed`);
  process.exit(failed ? 1 : 0);
}
