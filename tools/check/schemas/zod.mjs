// Prints the JSON Schemas that Zod writes for each of its types, one a line, with the name of the type.
import { z } from "zod";

const node = z.object({ v: z.number(), get kids() { return z.array(node); } });
const types = {
  email: z.email(), emailMax: z.email().max(50), html5Email: z.email({ pattern: z.regexes.html5Email }), rfcEmail: z.email({ pattern: z.regexes.rfc5322Email }),
  unicodeEmail: z.email({ pattern: z.regexes.unicodeEmail }), uuid: z.uuid(), uuidv4: z.uuidv4(), uuidv7: z.uuidv7(), guid: z.guid(), url: z.url(), urlMax: z.url().max(80), httpUrl: z.httpUrl(),
  emoji: z.emoji(), nanoid: z.nanoid(), cuid: z.cuid(), cuid2: z.cuid2(), ulid: z.ulid(), xid: z.xid(), ksuid: z.ksuid(), hostname: z.hostname(), mac: z.mac(), hex: z.hex(), hash: z.hash("sha256"),
  ipv4: z.ipv4(), ipv6: z.ipv6(), cidrv4: z.cidrv4(), cidrv6: z.cidrv6(), base64: z.base64(), base64url: z.base64url(), e164: z.e164(), jwt: z.jwt(),
  date: z.iso.date(), time: z.iso.time(), datetime: z.iso.datetime(), offset: z.iso.datetime({ offset: true }), local: z.iso.datetime({ local: true }), precision: z.iso.datetime({ precision: 3 }), duration: z.iso.duration(),
  regexMinMax: z.string().regex(/^[a-z0-9-]+$/).min(3).max(10), startsWith: z.string().startsWith("ab").max(10), endsWith: z.string().endsWith(".c"), includes: z.string().includes("xy").min(4),
  severalTests: z.string().startsWith("a").endsWith("z").includes("m").max(20), twoRegexes: z.string().regex(/a/).regex(/b/).length(5), lowercase: z.string().lowercase(), uppercase: z.string().uppercase().max(5), nonempty: z.string().nonempty(),
  int: z.int(), int32: z.int32(), uint32: z.uint32(), float32: z.float32(), float64: z.float64(), multipleOf: z.number().multipleOf(5).min(10).max(100), quarter: z.number().multipleOf(0.25).min(0).max(10),
  cents: z.number().multipleOf(0.01).positive(), intMultiple: z.int().multipleOf(3), positive: z.number().positive(), nonnegative: z.number().nonnegative(), negative: z.number().negative(),
  record: z.record(z.string(), z.number()), recordEnum: z.record(z.enum(["a", "b"]), z.number()), partialRecord: z.partialRecord(z.enum(["a", "b"]), z.number()), recordRegex: z.record(z.string().regex(/^[a-z]+$/), z.boolean()),
  recordNumber: z.record(z.number(), z.boolean()), looseRecord: z.looseRecord(z.string().regex(/^x/), z.boolean()), recordUuid: z.record(z.uuid(), z.string()), recordLength: z.record(z.string().min(2).max(8), z.string()),
  tuple: z.tuple([z.string(), z.int()]), tupleRest: z.tuple([z.string(), z.int()], z.boolean()), array: z.array(z.int()).min(1).max(3),
  discriminated: z.discriminatedUnion("t", [z.object({ t: z.literal("a"), x: z.int() }), z.object({ t: z.literal("b"), y: z.string() })]), union: z.union([z.string(), z.number()]),
  xor: z.xor([z.object({ a: z.string() }), z.object({ b: z.string() })]), optional: z.object({ a: z.string().optional(), b: z.int().nullable(), c: z.int().default(3), d: z.string().nullish() }),
  intersection: z.intersection(z.object({ a: z.string() }), z.object({ b: z.int() })), recursive: node, literals: z.literal(["a", 1, null, true]), template: z.templateLiteral(["id-", z.number(), "-", z.enum(["x", "y"])]),
  templateLengths: z.templateLiteral([z.string().min(2), "@", z.string().max(64)]), templateFormats: z.templateLiteral([z.email(), ":", z.uuid(), ":", z.boolean()]), file: z.file(), any: z.any(), unknown: z.unknown(), json: z.json(),
  strict: z.strictObject({ a: z.string() }), loose: z.looseObject({ a: z.string() }), catchall: z.object({ a: z.string() }).catchall(z.int()), enum: z.enum(["x", "y"]), numericEnum: z.enum({ A: 1, B: 2 }), partial: z.object({ a: z.int(), b: z.int() }).partial(),
};
for (const [name, type] of Object.entries(types))
  for (const target of ["draft-2020-12", "draft-7"]) console.log(JSON.stringify({ name: `zod ${name} (${target})`, schema: z.toJSONSchema(type, { target }) }));
