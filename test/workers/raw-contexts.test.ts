import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { JsonScanner } from '../../src/workers/raw/json-scanner.ts';
import { ProtoScanner } from '../../src/workers/raw/proto-scanner.ts';
import { rawContextOf } from '../../src/workers/raw/raw-context.ts';
import { createRawFields } from '../../src/workers/raw/raw-fields.ts';

/* Which contexts a scanner takes; decoding/scanners-equal-library shows that it reads them as the library does. */

const QUESTION = { namespace: 'doc', objectId: 'a', relation: 'viewer', subjectUserId: 'u' };
const fields = createRawFields();
const json = new JsonScanner(fields, 10);
const proto = new ProtoScanner(fields, 10);

describe('contexts of raw queries', () => {
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
