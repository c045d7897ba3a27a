import { inspect, isDeepStrictEqual } from 'node:util';
import { create, fromBinary, fromJsonString, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkQueryFromProto } from '../../src/gateway/rpc/query-from-proto.ts';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { type ConditionContext, parseContext } from '../../src/model/conditions.ts';
import { JsonScanner } from '../../src/workers/raw/json-scanner.ts';
import { ProtoScanner } from '../../src/workers/raw/proto-scanner.ts';
import { rawContextOf } from '../../src/workers/raw/raw-context.ts';
import { createRawFields } from '../../src/workers/raw/raw-fields.ts';

/* The context that a scanner takes is the one that the general path reads of the same body, or the scanner takes none. */

const RUNS = 400 * Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const QUESTION = { namespace: 'doc', objectId: 'a', relation: 'viewer', subjectUserId: 'u' };
const fields = createRawFields();
const json = new JsonScanner(fields, 10);
const proto = new ProtoScanner(fields, 10);

type Read = { readonly context: ConditionContext; readonly json: string };

function scanned(isTaken: boolean, bytes: Uint8Array): Read | undefined {
  if (!isTaken) return undefined;
  const context = rawContextOf(fields, { bytes });
  if (context === null) throw new Error('a body without its context');
  return { context: context.value(), json: context.json };
}

function generally(request: Parameters<typeof checkQueryFromProto>[0]): Read {
  const { contextJson } = checkQueryFromProto(request);
  return { context: parseContext(contextJson) ?? {}, json: contextJson };
}

/** Each member by itself: their order at the top is nothing that a condition sees, that within is. */
function membersOf({ context, json: text }: Read): unknown {
  const members = Object.keys(context).toSorted();
  return [text, members.map((name) => [name, JSON.stringify(context[name]), context[name]])];
}

/** By node's own comparison, to which a member called constructor is a member. */
function expectSame(read: Read, wanted: Read, body: string): void {
  const [ours, theirs] = [membersOf(read), membersOf(wanted)];
  if (!isDeepStrictEqual(ours, theirs)) expect.fail(`${body}: ${inspect([ours, theirs])}`);
}

const names = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('age', 'ip', 'scope', 'b', 'a', '10', '9', 'ä') },
  fc.constantFrom('', '__proto__', 'constructor', 'toString', '"', '\\', '\u0000', '\n', '\u007f#'),
);
const PLAIN_NUMBERS = '0 1 -1 30 1.5 -2.25 0.1 9007199254740993 123456789012345678901234';
const ODD_NUMBERS = '-0 -0.5 -0.0 1e3 1E-400 1e400 01 +1 1. .5 - 0x1 NaN 1234567890123456789012345';
const numbers = fc.constantFrom(...PLAIN_NUMBERS.split(' '), ...ODD_NUMBERS.split(' '));
const texts = fc
  .oneof(
    {
      weight: 6,
      arbitrary: fc.constantFrom('', 'eu', '10.0.0.1', 'zoë', '#', '漢字', 'x'.repeat(200)),
    },
    fc.constantFrom('"', '\\', '\u0000', '\n', '\ud800', '\u0085', '\u007f'),
  )
  .map((text) => JSON.stringify(text));
const PROTO_VALUES = [
  fc.constantFrom(true, false, null, 'eu', '', 'zoë', 0, 1, -1, 1.5, 'x'.repeat(200)),
  fc.constantFrom<number | string>(-0, 1e300, '\u0000', '\u0085', Number.MAX_SAFE_INTEGER),
];
const spaces = fc.constantFrom('', '', '', ' ', '\n\t ', '\r', '\u00a0');
const { value } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('true', 'false', 'null', '1', '"x"') },
      numbers,
    ),
    texts,
    fc.constantFrom('tru', 'undefined', "'x'", '"open', ''),
    tie('object'),
    fc
      .tuple(fc.array(tie('value'), { maxLength: 4 }), spaces)
      .map(([list, space]) => `[${space}${list.join(`${space},${space}`)}${space}]`),
  ),
  object: fc
    .tuple(fc.array(fc.tuple(names, tie('value')), { maxLength: 4 }), spaces, fc.nat(30))
    .map(([members, space, oddity]) => {
      const parts = members.map(
        ([name, text]) => `${space}${JSON.stringify(name)}${space}:${space}${text}`,
      );
      if (oddity === 0) parts.push('');
      const [open, close] = oddity === 1 ? ['[', '}'] : ['{', oddity === 2 ? '' : '}'];
      return `${open}${parts.join(`${space},`)}${space}${close}`;
    }),
}));
const members = fc.dictionary(names, value, { maxKeys: 4 });
const contexts = fc.oneof(
  { weight: 4, arbitrary: value },
  members.map((each) => {
    const parts = Object.entries(each).map(([name, text]) => `${JSON.stringify(name)}:${text}`);
    return `{${parts.join()}}`;
  }),
);

describe(`contexts of raw questions (SEED=${seed})`, () => {
  test('in JSON are those of the general path, or left to it', () => {
    let taken = 0;
    fc.assert(
      fc.property(contexts, fc.boolean(), fc.nat(40), (context, isFirst, tail) => {
        const rest = JSON.stringify(QUESTION).slice(1, -1);
        const parts = isFirst ? [`"context":${context}`, rest] : [rest, `"context":${context}`];
        const text = `{${parts.join()}}`;
        // Another body lies behind it: nothing of it may be read.
        const bytes = Buffer.from(`${text}${text.slice(-tail)}${text}`);
        const read = scanned(json.check(bytes, 0, Buffer.byteLength(text)), bytes);
        if (read === undefined) return;
        taken++;
        const wanted = generally(fromJsonString(CheckRequestSchema, text));
        expectSame(read, wanted, text);
      }),
      { numRuns: RUNS * 5, seed },
    );
    expect(taken).toBeGreaterThan(RUNS / 4);
  });

  test('in binary are those of the general path, or left to it, also damaged', () => {
    const kind = fc.constantFrom('none', 'none', 'flip', 'cut', 'append', 'insert');
    const damage = fc.record({ kind, at: fc.nat(), byte: fc.nat(255) });
    let taken = 0;
    fc.assert(
      fc.property(
        fc.object({ maxDepth: 5, key: names, values: PROTO_VALUES }),
        damage,
        (context, how) => {
          const message = create(CheckRequestSchema, { ...QUESTION, context: context as never });
          let bytes = Buffer.from(toBinary(CheckRequestSchema, message));
          const at = how.at % bytes.length;
          if (how.kind === 'flip') bytes[at] = how.byte;
          if (how.kind === 'cut') bytes = bytes.subarray(0, at);
          if (how.kind === 'append') bytes = Buffer.concat([bytes, Uint8Array.of(how.byte)]);
          if (how.kind === 'insert') {
            bytes = Buffer.concat([
              bytes.subarray(0, at),
              Uint8Array.of(how.byte),
              bytes.subarray(at),
            ]);
          }
          const { length } = bytes;
          const lying = Buffer.concat([bytes, bytes]);
          const isTaken = proto.check(lying, 0, length);
          if (!isTaken || fields.contextEnd === 0) return;
          taken++;
          const wanted = generally(fromBinary(CheckRequestSchema, bytes));
          const read = scanned(isTaken, lying) as Read;
          expectSame(read, wanted, bytes.toString('hex'));
        },
      ),
      { numRuns: RUNS * 5, seed },
    );
    expect(taken).toBeGreaterThan(RUNS / 4);
  });

  test.each([
    ['an escape', '{"a":"\\u0061"}'],
    ['a name twice', '{"a":1,"b":2,"a":1}'],
    ['a name twice within', '{"x":{"a":1,"a":2}}'],
    ['a negative zero', '{"a":-0}'],
    ['an exponent', '{"a":1e2}'],
    ['more digits than are looked at', `{"a":${'9'.repeat(25)}}`],
    ['null', 'null'],
    ['a list', '[]'],
    ['the prototype', '{"__proto__":{"a":1}}'],
    ['what is deep', '{"a":{"a":{"a":{"a":{"a":{}}}}}}'],
    ['what has many members', `{${Array.from({ length: 33 }, (_, i) => `"m${i}":1`).join()}}`],
    ['a comma too many', '{"a":1,}'],
    ['what is long', `{"a":"${'x'.repeat(16 * 1024)}"}`],
  ])('%s goes the general path', (_what, context) => {
    const text = `{"context":${context},${JSON.stringify(QUESTION).slice(1)}`;
    const bytes = Buffer.from(text);
    expect(json.check(bytes, 0, bytes.length)).toBe(false);
  });

  test('a long one in binary goes the general path, too', () => {
    const taken = [16_000, 17_000].map((length) => {
      const message = create(CheckRequestSchema, {
        ...QUESTION,
        context: { a: 'x'.repeat(length) },
      });
      const bytes = toBinary(CheckRequestSchema, message);
      return proto.check(bytes, 0, bytes.length);
    });
    expect(taken).toEqual([true, false]);
  });

  test.each(['{}', '{"age":30}', '{ "ip" : "10.0.0.1" , "b":[1,{"z":null,"a":true}] }'])(
    '%s is taken',
    (context) => {
      const text = `{"context":${context},${JSON.stringify(QUESTION).slice(1)}`;
      const bytes = Buffer.from(text);
      expect(json.check(bytes, 0, bytes.length)).toBe(true);
      expect(rawContextOf(fields, { bytes })?.value()).toEqual(JSON.parse(context));
      // The next body has none.
      const plain = Buffer.from(JSON.stringify(QUESTION));
      expect(json.check(plain, 0, plain.length)).toBe(true);
      expect(rawContextOf(fields, { bytes: plain })).toBeNull();
    },
  );
});
