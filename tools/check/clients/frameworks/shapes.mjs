// The schemas and the tool that the suites of all JavaScript frameworks use. Some frameworks leave lengths and ranges out
// of schemas, so no field of Order is a text of any length: a model with random weights would not end it.
import { z } from "zod";

export const Order = z.object({
  drink: z.enum(["tea", "coffee"]),
  count: z.number().int(),
  price: z.number(),
  hot: z.boolean(),
  note: z.enum(["sweet", "plain"]).nullable(),
  sizes: z.array(z.enum(["small", "large"])),
  address: z.object({ country: z.enum(["FR", "JP"]), floor: z.number().int() }),
  amount: z.union([z.number(), z.literal("all")]),
});
export const Small = z.object({
  name: z.string().min(1).max(12),
  code: z.string().regex(/^[A-Z]{2}[0-9]{3}$/),
  age: z.number().int().min(0).max(150),
  tags: z.array(z.enum(["a", "b"])).min(1).max(3),
});
export const text = "It is sunny."; // what the proxy lets the model say
export const hello = "Say hello.";
export const City = z.object({ city: z.string() });
const cities = [];

export function getWeather({ city }) {
  cities.push(city);
  return "sunny in " + city;
}

// Reports whether getWeather was called for Paris alone since the last time.
export const called = () => cities.splice(0).join() === "Paris";
