import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyCharacter } from '../../../test/support/any-text.ts';
import { byLength } from '../../../test/support/test-length.ts';
import { hintReader } from './change-feed.ts';
import { type ChangeHint, hintsIn, payloadsOf } from './change-hints.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const text = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.string({ maxLength: 300, size: 'max', unit: anyCharacter }),
  fc.constantFrom('', '__proto__', '"', '\\', '€'.repeat(256), '\u0000', '\n'),
);
const hint = fc.record({
  shard: fc.record({ projectId: text, tenantId: text }),
  revision: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
});

test(`every hint arrives, in payloads that PostgreSQL takes (SEED=${seed})`, () => {
  fc.assert(
    fc.property(fc.array(hint, { maxLength: 400, size: 'max' }), (hints) => {
      const payloads = payloadsOf('0123456789abcdef', hints);
      for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000);
      const messages = payloads.map(hintsIn);
      expect(messages.flatMap((message) => message?.hints)).toEqual(hints);
      expect(messages.every((message) => message?.sender === '0123456789abcdef')).toBe(true);
    }),
    { seed, numRuns: byLength(30, 100) * Number(process.env['FUZZ_RUNS'] ?? 1) },
  );
});

const named = (count: number): ChangeHint[] =>
  Array.from({ length: count }, (_, i) => ({
    shard: { projectId: 'default', tenantId: `tenant-${i}` },
    revision: 1_000 + i,
  }));

test('hundreds of shards share a payload; what fits into none is left out', () => {
  expect(payloadsOf('s', [])).toEqual([]);
  expect(payloadsOf('s', named(200))).toHaveLength(1);
  expect(payloadsOf('s', named(1_000)).length).toBeLessThan(6);
  const tooLong = { shard: { projectId: 'p'.repeat(9_000), tenantId: '' }, revision: 1 };
  expect(payloadsOf('s', [tooLong, ...named(1)]).flatMap((one) => hintsIn(one)?.hints)).toEqual(
    named(1),
  );
});

/** The reading of the release before, as it was: who runs beside this one during a rollout. */
function parsedByPreviousRelease(payload: string): unknown {
  let parsed: unknown;
  try {
    parsed = JSON.parse(payload);
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed)) return undefined;
  const [projectId, tenantId, revision] = parsed as readonly unknown[];
  if (typeof projectId !== 'string' || typeof tenantId !== 'string') return undefined;
  if (typeof revision !== 'number' || !Number.isSafeInteger(revision) || revision < 0)
    return undefined;
  return { shard: { projectId, tenantId }, revision };
}

test('the release before does not understand this one, and so looks at every shard', () => {
  for (const payload of payloadsOf('s', named(500))) {
    expect(parsedByPreviousRelease(payload)).toBeUndefined();
  }
});

test('what the release before says is understood', () => {
  const old = JSON.stringify(['p', 't', 7]);
  expect(parsedByPreviousRelease(old)).toBeDefined();
  const hints = [{ shard: { projectId: 'p', tenantId: 't' }, revision: 7 }];
  expect(hintsIn(old)).toEqual({ sender: '', hints });
});

const STRANGE = [
  '',
  'what?',
  '1',
  'null',
  '[]',
  '["p","t"]',
  '["p","t",-1]',
  '["p","t",1.5]',
  '{"0":"p"}',
  '{"from":"s","at":[]}',
  '{"from":"s","at":["p","t"]}',
  '{"from":"s","at":["p","t",1,"p","t"]}',
  '{"from":"s","at":["p","t",1,"p",2,3]}',
  '{"from":1,"at":["p","t",1]}',
  '{"from":"s","at":{"length":3}}',
];

test.each(STRANGE)('%j has every shard looked at', (payload) => {
  expect(hintsIn(payload)).toBeUndefined();
  const told: unknown[] = [];
  const counts = { own: 0, unknown: 0, held: 0, dropped: 0 };
  hintReader({ sender: 'me', onHint: (shard) => told.push(shard) }, counts)(payload);
  expect([told, counts.unknown]).toEqual([[null], 1]);
});

test('hints of this process and of shards that are not held go no further, and are counted', () => {
  const told: unknown[] = [];
  const counts = { own: 0, unknown: 0, held: 0, dropped: 0 };
  const read = hintReader(
    {
      sender: 'me',
      isHeld: (shard) => shard.tenantId === 'tenant-3',
      onHint: (shard, revision) => told.push([shard?.tenantId, revision]),
    },
    counts,
  );
  for (const payload of payloadsOf('me', named(10))) read(payload);
  expect(told).toEqual([]);
  for (const payload of payloadsOf('other', named(10))) read(payload);
  expect(told).toEqual([['tenant-3', 1_003]]);
  expect(counts).toEqual({ own: 1, unknown: 0, held: 1, dropped: 9 });
});
