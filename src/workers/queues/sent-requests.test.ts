import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SentRequests } from './sent-requests.ts';
import { type PendingRequest, ShardQueue } from './shard-queue.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const shard = new ShardQueue('p', 't', 0);

function requestOf(id: number): PendingRequest {
  return {
    id,
    shard,
    scope: {} as PendingRequest['scope'],
    bytes: 1,
    state: 'sent',
    fail: () => {},
    label: () => '',
    bodyBytes: () => new Uint8Array(0),
  };
}

const idsOf = (requests: readonly PendingRequest[]): number[] =>
  requests.map(({ id }) => id).toSorted((a, b) => a - b);

test('says what a Map says, whatever is added and taken away', () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
  // Few residues and a few ids beyond 32 bits, so that slots collide and searches go round the end.
  const id = fc
    .tuple(fc.nat(6), fc.constantFrom(0, 3, 1_021, 1_022, 1_023, 2 ** 32 + 1_023, 2 ** 40))
    .map(([turn, base]) => turn * 1_024 + base);
  const steps = fc.array(fc.tuple(fc.boolean(), id), { maxLength: 200, size: 'max' });
  fc.assert(
    fc.property(steps, (all) => {
      const sent = new SentRequests();
      const map = new Map<number, PendingRequest>();
      for (const [isAdded, one] of all) {
        if (isAdded && !map.has(one)) {
          const request = requestOf(one);
          sent.add(request);
          map.set(one, request);
        } else if (!isAdded && sent.delete(one) !== map.delete(one)) return false;
        if (sent.size !== map.size) return false;
        for (const key of [one, one + 1_024, one + 1]) {
          if (sent.get(key) !== map.get(key)) return false;
        }
      }
      expect(idsOf(sent.values())).toEqual(idsOf([...map.values()]));
      return [...map].every(([key, request]) => sent.get(key) === request);
    }),
    { seed, numRuns: Math.ceil(300 * FUZZ_RUNS) },
  );
});

test('grows, and finds all of many', () => {
  const sent = new SentRequests();
  for (let id = 1; id <= 5_000; id++) sent.add(requestOf(id * 7));
  expect(sent.size).toBe(5_000);
  for (let id = 1; id <= 5_000; id += 2) expect(sent.delete(id * 7)).toBe(true);
  for (let id = 1; id <= 5_000; id++) expect(sent.get(id * 7) !== undefined).toBe(id % 2 === 0);
  expect(sent.values()).toHaveLength(2_500);
});
