import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonScanner } from '../../src/workers/raw/json-scanner.ts';
import { createRawFields, POSITIONS_PER_ITEM } from '../../src/workers/raw/raw-fields.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const ITEMS_MAX = 100;

/** Fields of each item of a body as texts, or undefined if the scanner leaves it to others. */
function scan(items: readonly string[]): readonly string[][] | undefined {
  const fields = createRawFields();
  const body = Buffer.from(`{"items":[${items.join(',')}]}`);
  if (!new JsonScanner(fields, ITEMS_MAX).batchCheck(body, 0, body.length)) return undefined;
  return Array.from({ length: fields.itemCount }, (_, item) =>
    Array.from({ length: POSITIONS_PER_ITEM / 2 }, (__, field) => {
      const at = item * POSITIONS_PER_ITEM + field * 2;
      return body.toString('utf8', fields.items[at], fields.items[at + 1]);
    }),
  );
}

const name = fc.constantFrom('doc', 'docs', 'a', 'viewer', 'x-1_y');
const id = fc.constantFrom('1', 'a b', 'ü', 'doc', 'd'.repeat(256));
const badValue = fc.constantFrom('', 'D', '9', 'a#b', 'a\\"b', 'a\\u0041', '\t', 'd'.repeat(257));
const keys = fc.shuffledSubarray(['namespace', 'object_id', 'relation', 'subject_user_id'], {
  minLength: 4,
});
const spaces = fc.constantFrom('', '', '', ' ', '\n');

/** An item as text: mostly well-formed, in one of a few ways to write it. */
const item = fc
  .record({
    keys,
    space: spaces,
    values: fc.tuple(name, id, name, id),
    badAt: fc.nat(30),
    bad: badValue,
  })
  .map(({ keys: order, space, values, badAt, bad }) => {
    const all = ['namespace', 'object_id', 'relation', 'subject_user_id'];
    const parts = order.map((key) => {
      const field = all.indexOf(key);
      return `"${key}":${space}"${field === badAt ? bad : (values[field] ?? '')}"`;
    });
    return `{${parts.join(`,${space}`)}}`;
  });
const broken = fc.constantFrom(
  '{}',
  '{"namespace":"doc"}',
  'null',
  '"x"',
  '{"namespace":"doc","namespace":"doc"}',
);
const canonical = fc
  .tuple(name, id, name, id)
  .map(([a, b, c, d]) =>
    JSON.stringify({ namespace: a, object_id: b, relation: c, subject_user_id: d }),
  );
const list = fc.array(
  fc.oneof(
    { weight: 20, arbitrary: canonical },
    { weight: 4, arbitrary: item },
    { weight: 1, arbitrary: broken },
  ),
  { minLength: 1, maxLength: 12 },
);

test(`an item is read the same behind others as alone (SEED=${seed})`, () => {
  let accepted = 0;
  fc.assert(
    fc.property(list, (items) => {
      const alone = items.map((one) => scan([one])?.[0]);
      const together = scan(items);
      if (alone.includes(undefined)) expect(together).toBeUndefined();
      else {
        accepted++;
        expect(together).toEqual(alone);
      }
    }),
    { numRuns: 2_000, seed },
  );
  expect(accepted).toBeGreaterThan(100);
});

test('an item does not end in the body behind', () => {
  const one = '{"namespace":"doc","object_id":"a","relation":"viewer","subject_user_id":"u"}';
  for (let cut = 0; cut < one.length; cut++) {
    const body = Buffer.from(`{"items":[${one},${one.slice(0, cut)}`);
    const buffer = Buffer.concat([body, Buffer.from(`${one.slice(cut)}]}`)]);
    const scanner = new JsonScanner(createRawFields(), ITEMS_MAX);
    expect(scanner.batchCheck(buffer, 0, body.length)).toBe(false);
    expect(scanner.batchCheck(buffer, 0, buffer.length)).toBe(true);
  }
});

test('a body is read in slices as in one go, whatever is around its items', () => {
  const one = '{"namespace":"doc","object_id":"a","relation":"viewer","subject_user_id":"u"}';
  const items = `"items":[${Array.from({ length: 600 }, () => one).join()}]`;
  const bodies: readonly (readonly [string, boolean])[] = [
    [`{"project_id":"p",${items},"tenant_id":"t"}`, true],
    [`{${items} }`, true],
    [`{"project_id":"p",${items},"project_id":"p"}`, false],
    [`{"project_id":"p",${items},"projectId":"p"}`, false],
    [`{${items},${items}}`, false],
    [`{${items}]`, false],
    [`{${items}x`, false],
    [`{${items},}`, false],
    [`{${items}}}`, false],
    [`{${items}`, false],
  ];
  for (const [text, isTaken] of bodies) {
    const body = Buffer.from(text);
    const scanner = new JsonScanner(createRawFields(), 10_000);
    expect(scanner.batchCheck(body, 0, body.length)).toBe(isTaken);
    let pauses = 0;
    let isScanned = scanner.startBatch(body, 0, body.length, 0);
    for (; isScanned === null; pauses++) isScanned = scanner.resumeBatch(body, 0);
    expect([isScanned, pauses > 1]).toEqual([isTaken, true]);
  }
});
