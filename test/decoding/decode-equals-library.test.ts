import {
  type DescMessage,
  fromBinary,
  fromJsonString,
  type Message,
  toBinary,
} from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MessageDecoder } from '../../src/decoding/message-decoder.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { byLength } from '../support/test-length.ts';
import { INPUTS, jsonTextOf } from './messages.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(30, 400));
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000_000);
process.stdout.write(`decode-equals-library: SEED=${SEED}\n`);

/** Everything is scanned and built in slices, however small. */
const SLICED = { unscannedBytesMax: 0, scannedAtOnceBytesMax: 0, decodedAtOnceValuesMax: 0 };
const sliced = new MessageDecoder({}, SLICED);
/** As it is used; bodies of tests are often small enough to be decoded at once. */
const used = new MessageDecoder();
const utf8 = new TextDecoder('utf-8', { fatal: true });

type Outcome = { readonly message: Message } | { readonly reason: string; readonly text: string };

async function outcomeOf(decode: () => Message | Promise<Message>): Promise<Outcome> {
  try {
    return { message: await decode() };
  } catch (error) {
    const reason = error instanceof AppError ? error.reason : 'BODY_MALFORMED';
    return { reason, text: (error as Error).message };
  }
}

async function compare(desc: DescMessage, isBinary: boolean, bytes: Uint8Array): Promise<void> {
  const wanted = await outcomeOf(() =>
    isBinary ? fromBinary(desc, bytes) : fromJsonString(desc, utf8.decode(bytes)),
  );
  for (const decoder of [sliced, used]) {
    const found = await outcomeOf(() => decoder.decode(desc, isBinary, bytes));
    // The library takes times that are none; times.test.ts shows which are taken.
    if ([wanted, found].some((one) => 'text' in one && one.text.includes('RFC 3339'))) continue;
    if ('message' in wanted || 'message' in found) expect(found).toEqual(wanted);
    else expect(found.reason).toBe(wanted.reason);
  }
}

const input = fc.constantFrom(...INPUTS);
/** Lists of some hundred items are built in several runs. */
const itemsMax = fc.constantFrom(3, 3, 3, 700);
const jsonBody = fc
  .tuple(input, itemsMax)
  .chain(([desc, max]) => fc.record({ desc: fc.constant(desc), text: jsonTextOf(desc, max) }));
/** A place in a body as a share of it, and the byte that is put there; NaN: the body ends there. */
const damage = fc.tuple(
  fc.double({ min: 0, max: 0.999, noNaN: true }),
  fc.oneof(
    fc.constantFrom(Number.NaN, 0x22, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d, 0x5c, 0x20, 0xff, 0x00),
    fc.nat(255),
  ),
);

function damaged(bytes: Uint8Array, [share, byte]: readonly [number, number]): Uint8Array {
  const at = Math.floor(share * bytes.length);
  if (Number.isNaN(byte)) return bytes.subarray(0, at);
  const copy = Uint8Array.from(bytes);
  copy[at] = byte;
  return copy;
}

test('JSON that is built in slices is what the library makes of it', async () => {
  await fc.assert(
    fc.asyncProperty(jsonBody, ({ desc, text }) => compare(desc, false, Buffer.from(text))),
    { numRuns: RUNS, seed: SEED },
  );
}, 300_000);

test('damaged JSON is refused where the library refuses it', async () => {
  await fc.assert(
    fc.asyncProperty(jsonBody, damage, ({ desc, text }, hurt) =>
      compare(desc, false, damaged(Buffer.from(text), hurt)),
    ),
    { numRuns: RUNS, seed: SEED },
  );
}, 300_000);

/** A valid one, parts of it twice, and some fields that nobody knows. */
const binaryBody = fc
  .record({ body: jsonBody, other: fc.nat(), unknown: fc.nat(40), isTwice: fc.boolean() })
  .map(({ body: { desc, text }, other, unknown, isTwice }) => {
    let bytes: Uint8Array;
    try {
      bytes = toBinary(desc, fromJsonString(desc, text));
    } catch {
      bytes = new Uint8Array(0);
    }
    const writer = new BinaryWriter().raw(bytes);
    if (unknown < 4) {
      writer.tag(1_000 + unknown, WireType.LengthDelimited).bytes(Buffer.from(`${other}`));
      writer.tag(2_000, WireType.StartGroup).tag(1, WireType.Varint).uint32(other);
      writer.tag(2_000, WireType.EndGroup);
    }
    if (isTwice) writer.raw(bytes);
    return { desc, bytes: writer.finish() };
  });

test('protobuf that is built in slices is what the library makes of it', async () => {
  await fc.assert(
    fc.asyncProperty(binaryBody, ({ desc, bytes }) => compare(desc, true, bytes)),
    { numRuns: RUNS, seed: SEED },
  );
}, 300_000);

test('damaged protobuf is refused where the library refuses it', async () => {
  await fc.assert(
    fc.asyncProperty(binaryBody, damage, async ({ desc, bytes }, hurt) => {
      const body = damaged(bytes, hurt);
      const found = await outcomeOf(() => sliced.decode(desc, true, body));
      // A message that ends behind the one that it is in is refused here, as others refuse it; and so are many unknown fields.
      if (!('message' in found) && /no protobuf at byte|unknown field number/.test(found.text)) {
        expect(found.reason).toBe('BODY_MALFORMED');
      } else await compare(desc, true, body);
    }),
    { numRuns: RUNS, seed: SEED },
  );
}, 300_000);
