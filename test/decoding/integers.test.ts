/* Integers as texts in JSON, in whichever message of whichever method they lie: the whole numbers of JSON, and nothing else. */
import { type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { messageOfJson } from '../../src/decoding/json-values.ts';
import { MessageDecoder } from '../../src/decoding/message-decoder.ts';
import { CostMeter } from '../../src/model/cel/cel-meter.ts';
import { celValueOf } from '../../src/model/cel/cel-values.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { INPUTS, jsonAt, valueAt, waysTo } from './messages.ts';

/** Everything is scanned and built in slices; and as it is used. */
const SLICED = { unscannedBytesMax: 0, scannedAtOnceBytesMax: 0, decodedAtOnceValuesMax: 0 };
const DECODERS = [new MessageDecoder(), new MessageDecoder({}, SLICED)];

/** Conformance cases of protobuf 33 (JsonInput.Int32Field…, Int64Field…), and what lies next to them. */
const TAKEN = [
  ['12', 12],
  ['0', 0],
  ['-0', 0],
  ['-7', -7],
  ['1e3', 1000],
  ['1E+3', 1000],
  ['1000.0', 1000],
  ['100000.000', 100_000],
  ['0.5e1', 5],
  ['50e-1', 5],
  ['0.0', 0],
  ['0e9999', 0],
  ['-2147483648', -2_147_483_648],
  ['2147483647.0', 2_147_483_647],
] as const;
const REFUSED = (
  '0x10 0b1 0o7 +1 01 -01 00 1.5 1e-1 .5 5. 1e 1_000 Infinity NaN 12abc true null ' +
  '9223372036854775808 1e19 -1e19 1e99999 9e9999'
).split(' ');
const BEYOND_32_BITS = ['2147483648', '-2147483649', '1e10'];

/** Those of a duration have a form of their own. */
function isInteger({ scalar, parent }: DescField): boolean {
  const isOurs = !parent.typeName.startsWith('google.');
  return isOurs && (scalar === ScalarType.INT32 || scalar === ScalarType.INT64);
}

const PLACES = [...new Set(INPUTS)].flatMap((desc) =>
  waysTo(desc, isInteger).map((way) => ({
    desc,
    way,
    name: way.map(({ name }) => name).join('.'),
  })),
);

test('integers of 32 and of 64 bits lie in what is sent, in lists as well', () => {
  const names = PLACES.map(({ desc, name }) => `${desc.typeName}.${name}`);
  expect(names).toContain('gatehouse.v1.ListObjectsRequest.page_size');
  expect(names).toContain('gatehouse.v1.WriteModelRequest.expected_version');
  expect(names).toContain('notify.v1.MarkReadRequest.up_to_sequence');
});

test.each(PLACES)('$desc.typeName: $name', async ({ desc, way }) => {
  const field = way
    .map(({ name, fieldKind }) => name + (fieldKind === 'list' ? '[0]' : ''))
    .join('.');
  const is32Bits = way.at(-1)?.scalar === ScalarType.INT32;
  for (const decoder of DECODERS) {
    for (const isCamel of [false, true]) {
      const decode = async (value: unknown): Promise<Message> =>
        await decoder.decode(
          desc,
          false,
          Buffer.from(JSON.stringify(jsonAt(way, value, isCamel), undefined, 1)),
        );
      for (const [text, value] of TAKEN) {
        const expected = is32Bits ? value : BigInt(value);
        expect(valueAt(await decode(text), way), text).toBe(expected);
      }
      expect(valueAt(await decode(1e3), way)).toBe(is32Bits ? 1000 : 1000n);
      for (const text of [...REFUSED, '', ' 1', '1 ', '1\n', ...(is32Bits ? BEYOND_32_BITS : [])]) {
        const error = await decode(text).catch((thrown: unknown) => thrown);
        expect(error, text).toBeInstanceOf(AppError);
        expect(error).toMatchObject({ reason: 'BODY_MALFORMED', metadata: { field } });
        expect((error as Error).message).toContain(`${field}: must be a whole number from -`);
      }
    }
  }
});

test('all 64 bits are kept', async () => {
  const place = PLACES.find(({ name }) => name === 'expected_version');
  for (const text of ['9223372036854775807', '-9223372036854775808', '922337203685477580.7e1']) {
    for (const decoder of DECODERS) {
      const bytes = Buffer.from(JSON.stringify({ expected_version: text }));
      const message = await decoder.decode(place?.desc as DescMessage, false, bytes);
      const expected = text.startsWith('-') ? -(2n ** 63n) : 2n ** 63n - 1n;
      expect(valueAt(message, place?.way ?? [])).toBe(expected);
    }
  }
});

test('texts of millions of digits take their length, and not its square', () => {
  const place = PLACES.find(({ name }) => name === 'page_size');
  const zeros = '0'.repeat(4_000_000);
  const unbounded = (): CostMeter => new CostMeter(Number.MAX_SAFE_INTEGER);
  for (const text of [`1${zeros}`, `0.${zeros}1`, '10'.repeat(2_000_000), `${zeros}x`]) {
    const read = (): unknown => messageOfJson(place?.desc as DescMessage, { page_size: text });
    expect(read).toThrow('page_size: must be a whole number');
    expect(celValueOf({ kind: 'int' }, text, unbounded())).toBeUndefined();
  }
  expect(celValueOf({ kind: 'int' }, `1.${zeros}`, unbounded())).toBe(1n);
});

test('an integer that is rewritten hides no duplicate, and no escape hides an integer', () => {
  const place = PLACES.find(({ name }) => name === 'page_size');
  const decode = (json: string): unknown =>
    DECODERS[0]?.decode(place?.desc as DescMessage, false, Buffer.from(json));
  expect(() => decode('{"page_size":"1e1","page_size":"1e1"}')).toThrow('duplicate');
  expect(() => decode('{"page_size":"1e1","nothing":1}')).toThrow('unknown');
  expect(() => decode('{"page\\u005fsize":"0x10"}')).toThrow('page_size: must be a whole number');
  expect(decode('{"page_size":null}')).toBeDefined();
});
