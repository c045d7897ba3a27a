import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, JSON_DEPTH_MAX, type JsonValue } from "./canonical-json.ts";

describe("canonicalJson", () => {
  test("sorts keys at every depth and writes numbers as ECMAScript does", () => {
    expect(canonicalJson({ b: [1, { d: 1e21, c: -0 }], a: "é\n", "": null, t: true }, "x")).toBe(
      '{"":null,"a":"é\\n","b":[1,{"c":0,"d":1e+21}],"t":true}',
    );
  });

  test("is the same for every order of keys and is read back as the same value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value as JsonValue, "x");
        const shuffled = JSON.parse(text, (_key, member: unknown) =>
          member !== null && typeof member === "object" && !Array.isArray(member)
            ? Object.fromEntries(Object.entries(member).toReversed())
            : member,
        ) as JsonValue;
        expect(canonicalJson(shuffled, "x")).toBe(text);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test.each([
    ["U+0000 in a string", { a: ["\u0000"] }],
    ["U+0000 in a key", { "a\u0000": 1 }],
    ["a lone surrogate", { a: "\ud800" }],
    ["a lone surrogate in a key", { "\udc00": 1 }],
    ["NaN", { a: Number.NaN }],
    ["Infinity", { a: Infinity }],
  ])("refuses %s", (_name, value) => {
    expect(() => canonicalJson(value, "context")).toThrow(
      expect.objectContaining({ reason: "FIELD_INVALID", metadata: { field: "context" } }),
    );
  });

  test("refuses nesting above the limit", () => {
    let value: JsonValue = 1;
    for (let i = 0; i < JSON_DEPTH_MAX; i++) value = [value];
    expect(() => canonicalJson(value, "context")).not.toThrow();
    expect(() => canonicalJson([value], "context")).toThrow(/nested deeper/);
  });
});
