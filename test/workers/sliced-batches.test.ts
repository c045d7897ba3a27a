import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BatchEncoder, jsonOfBatch, protoOfBatch } from '../../src/workers/raw/answer-encoder.ts';
import { BatchScan } from '../../src/workers/raw/batch-scan.ts';

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const RUNS = 60 * Number(process.env['FUZZ_RUNS'] ?? '1');
const ITEMS_MAX = 4_000;

type Found = { readonly isScanned: boolean; readonly items: number[]; readonly scope: number[] };

/** Reads a body at once or, with a slice that has always ended, a part at a time. */
function scanned(bytes: Uint8Array, isJson: boolean, isSliced: boolean): Found & { parts: number } {
  const { json, proto, fields } = new BatchScan(ITEMS_MAX);
  const scanner = isJson ? json : proto;
  let parts = 1;
  let isScanned: boolean | null;
  if (isSliced) {
    isScanned = scanner.startBatch(bytes, 0, bytes.length, 0);
    for (; isScanned === null; parts++) {
      // As when the bodies of a message are copied away: other memory with the same bytes.
      isScanned = scanner.resumeBatch(bytes.slice(), 0);
    }
  } else isScanned = scanner.batchCheck(bytes, 0, bytes.length);
  const items = isScanned ? [...fields.items.subarray(0, fields.itemCount * 8)] : [];
  return { isScanned, items, scope: isScanned ? [...fields.scope] : [], parts };
}

function itemOf(i: number): Record<string, string> {
  return { namespace: 'doc', object_id: `d${i}`, relation: 'viewer', subject_user_id: `u${i % 7}` };
}

function jsonBody(count: number, isScopeLast: boolean): Buffer {
  const items = Array.from({ length: count }, (_, i) => itemOf(i));
  const scope = { project_id: 'p', tenant_id: 't' };
  return Buffer.from(JSON.stringify(isScopeLast ? { items, ...scope } : { ...scope, items }));
}

const field = (number: number, value: Buffer): Buffer => {
  const length =
    value.length < 128 ? [value.length] : [(value.length & 127) | 128, value.length >> 7];
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), value]);
};

function protoBody(count: number): Buffer {
  const text = (number: number, value: string): Buffer => field(number, Buffer.from(value));
  const items = Array.from({ length: count }, (_, i) =>
    field(3, Buffer.concat(Object.values(itemOf(i)).map((value, n) => text(n + 1, value)))),
  );
  return Buffer.concat([text(1, 'p'), text(2, 't'), ...items]);
}

test(`a batch that is read in slices is read as at once, damaged or not (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(
      fc.record({
        count: fc.integer({ min: 1, max: 3_000 }),
        isJson: fc.boolean(),
        isScopeLast: fc.boolean(),
        damage: fc.option(fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) })),
        cut: fc.option(fc.nat()),
      }),
      ({ count, isJson, isScopeLast, damage, cut }) => {
        const whole = isJson ? jsonBody(count, isScopeLast) : protoBody(count);
        const body = cut === null ? whole : whole.subarray(0, cut % whole.length);
        if (damage !== null && body.length > 0) body[damage.at % body.length] = damage.byte;
        const { parts: _, ...atOnce } = scanned(body, isJson, false);
        const { parts, ...inSlices } = scanned(body, isJson, true);
        expect(inSlices).toEqual(atOnce);
        if (damage === null && cut === null) {
          expect(atOnce.isScanned).toBe(true);
          expect(parts).toBeGreaterThanOrEqual(Math.floor(count / 256));
        }
      },
    ),
    { seed: SEED, numRuns: RUNS },
  );
});

test('a scanner that was left in the middle of a batch reads the next one from its start', () => {
  const { json, fields } = new BatchScan(ITEMS_MAX);
  const body = jsonBody(1_000, false);
  expect(json.startBatch(body, 0, body.length, 0)).toBe(null);
  const broken = Buffer.from([0xff, 0x7b]);
  expect(json.startBatch(broken, 0, broken.length, 0)).toBe(false);
  const next = jsonBody(3, true);
  expect(json.startBatch(next, 0, next.length, Infinity)).toBe(true);
  expect(fields.itemCount).toBe(3);
});

test('an answer that is encoded in slices is that of one go', () => {
  const outcomes = Uint8Array.from({ length: 1_500 }, (_, i) => i % 3);
  const errors = new Map<number, string>();
  outcomes.forEach((outcome, i) => {
    if (outcome === 2) errors.set(i, `"${i}" was ü not reached`);
  });
  for (const isJson of [true, false]) {
    const encoder = new BatchEncoder(outcomes, errors, isJson);
    let slices = 1;
    while (encoder.run(0) === 'more') slices += 1;
    // Five looks at the clock while it is measured, five while it is written.
    expect(slices).toBe(11);
    const whole = isJson ? jsonOfBatch(outcomes, errors) : protoOfBatch(outcomes, errors);
    expect(Buffer.from(encoder.body())).toEqual(Buffer.from(whole));
  }
});
