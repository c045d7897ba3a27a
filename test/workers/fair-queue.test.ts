import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ReadScope } from '../../src/protocol/shard-client.ts';
import { FairQueue } from '../../src/workers/queues/fair-queue.ts';
import { PendingRawRequest } from '../../src/workers/queues/pending-request.ts';
import { ShardQueue } from '../../src/workers/queues/shard-queue.ts';
import { scopeOf } from './pool-fixture.ts';

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const RUNS = 200 * Number(process.env['FUZZ_RUNS'] ?? '1');
const LARGE_BYTES = 1_300_000;
const LARGE_SENT_BYTES_MAX = 4 * 1024 * 1024;
const BATCH_BYTES_MAX = 1024 * 1024;
const nowMs = (): number => 0;
let id = 0;

const shardOf = (tenantId: string): ShardQueue => new ShardQueue('p', tenantId, 0);

function request(shard: ShardQueue, bytes: number): PendingRawRequest {
  id += 1;
  const scope: ReadScope = scopeOf({ projectId: 'p', tenantId: shard.tenantId }, 0);
  const expected = { projectId: 'p', tenantId: shard.tenantId, token: '' };
  return new PendingRawRequest(
    id,
    shard,
    scope,
    1,
    new Uint8Array(bytes),
    expected,
    () => undefined,
  );
}

function push(queue: FairQueue, shard: ShardQueue, bytes: number): PendingRawRequest {
  const made = request(shard, bytes);
  queue.enqueue(made, nowMs);
  return made;
}

test('what a tenant asks behind the flood of another is in the next message', () => {
  const queue = new FairQueue();
  const [noisy, quiet] = [shardOf('noisy'), shardOf('quiet')];
  for (let i = 0; i < 64; i++) push(queue, noisy, LARGE_BYTES);
  expect(queue.takeBatch().map((r) => r.shard)).toEqual([noisy]);
  const check = push(queue, quiet, 200);
  expect(queue.takeBatch()).toContain(check);
});

test('small requests of a flood take turns by bytes with those of another tenant', () => {
  const queue = new FairQueue();
  const [noisy, quiet] = [shardOf('noisy'), shardOf('quiet')];
  for (let i = 0; i < 5_000; i++) push(queue, noisy, 400);
  const checks = Array.from({ length: 100 }, () => push(queue, quiet, 400));
  // A turn of 64 KiB is 141 requests of 464 bytes: all of the other tenant's are among the first 512.
  const first = queue.takeBatch();
  expect(first).toHaveLength(512);
  for (const check of checks) expect(first).toContain(check);
  expect(first.slice(0, 141).every((r) => r.shard === noisy)).toBe(true);
  expect(first.slice(141, 241)).toEqual(checks);
});

test('a tenant alone waits for no turns', () => {
  const queue = new FairQueue();
  const shard = shardOf('t');
  push(queue, shard, LARGE_BYTES);
  expect(queue.takeBatch()).toHaveLength(1);
});

test('small requests of a tenant do not wait behind its own large ones', () => {
  const queue = new FairQueue();
  const shard = shardOf('t');
  for (let i = 0; i < 10; i++) push(queue, shard, LARGE_BYTES);
  while (queue.takeBatch().length > 0);
  const check = push(queue, shard, 200);
  expect(queue.takeBatch()).toEqual([check]);
});

test('the worker has no more large requests of a tenant than keep it busy', () => {
  const queue = new FairQueue();
  const [noisy, other] = [shardOf('noisy'), shardOf('other')];
  for (let i = 0; i < 10; i++) push(queue, noisy, LARGE_BYTES);
  const sent: PendingRawRequest[] = [];
  for (let taken = queue.takeBatch(); taken.length > 0; taken = queue.takeBatch()) {
    sent.push(...(taken as PendingRawRequest[]));
  }
  expect(sent).toHaveLength(3);
  expect(queue.waiting()).toHaveLength(7);
  // Another one's are not held back by that.
  const batch = push(queue, other, LARGE_BYTES);
  expect(queue.takeBatch()).toEqual([batch]);
  expect(queue.answered(sent[0] as PendingRawRequest)).toBe(true);
  expect(queue.takeBatch()).toHaveLength(1);
  expect(queue.takeBatch()).toHaveLength(0);
});

test('one that is larger than all bounds goes alone, when the worker has no other of its tenant', () => {
  const queue = new FairQueue();
  const shard = shardOf('t');
  const huge = push(queue, shard, 2 * LARGE_SENT_BYTES_MAX);
  const large = push(queue, shard, 20_000);
  expect(queue.takeBatch()).toEqual([huge]);
  expect(queue.takeBatch()).toEqual([]);
  expect(queue.answered(huge)).toBe(true);
  expect(queue.takeBatch()).toEqual([large]);
});

test(`nothing is lost, sent twice, overtaken in its line or beyond a bound (SEED=${SEED})`, () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('push' as const),
      tenant: fc.nat(3),
      bytes: fc.oneof(fc.nat(2_000), fc.nat(30_000), fc.nat(2_000_000)),
    }),
    fc.record({ kind: fc.constant('take' as const) }),
    fc.record({ kind: fc.constant('answer' as const), pick: fc.nat() }),
    fc.record({ kind: fc.constant('cancel' as const), pick: fc.nat() }),
    fc.record({ kind: fc.constant('lose' as const) }),
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), (steps) => {
      const queue = new FairQueue();
      const shards = Array.from({ length: 4 }, (_, i) => shardOf(`t${i}`));
      const waiting = new Set<PendingRawRequest>();
      const sent = new Set<PendingRawRequest>();
      const finish = (ended: PendingRawRequest): void => {
        const wasSent = sent.delete(ended);
        waiting.delete(ended);
        ended.state = 'done';
        if (wasSent) queue.answered(ended);
        else ended.shard.fifoFor(ended.bytes).gone(ended);
      };
      const take = (): number => {
        const taken = queue.takeBatch() as PendingRawRequest[];
        for (const name of ['small', 'large'] as const) {
          const ofIt = taken.filter((r) => r.shard.fifoFor(r.bytes) === r.shard[name]);
          const bytes = ofIt.reduce((sum, r) => sum + r.bytes, 0);
          expect(ofIt.length <= 1 || bytes <= BATCH_BYTES_MAX).toBe(true);
        }
        for (const one of taken) {
          expect(waiting.delete(one)).toBe(true);
          const line = one.shard.fifoFor(one.bytes);
          const before = [...waiting].filter(
            (r) => r.shard.fifoFor(r.bytes) === line && r.id < one.id,
          );
          expect(before.every((r) => taken.includes(r))).toBe(true);
          sent.add(one);
        }
        for (const { large } of shards) {
          const held = [...sent].filter((r) => r.shard.fifoFor(r.bytes) === large);
          expect(large.sentBytes).toBe(held.reduce((sum, r) => sum + r.bytes, 0));
          expect(held.length <= 1 || large.sentBytes <= LARGE_SENT_BYTES_MAX).toBe(true);
        }
        return taken.length;
      };
      for (const one of steps) {
        const pickOf = (set: Set<PendingRawRequest>, pick: number): PendingRawRequest | undefined =>
          [...set][pick % Math.max(1, set.size)];
        if (one.kind === 'push') {
          waiting.add(push(queue, shards[one.tenant] as ShardQueue, one.bytes));
        } else if (one.kind === 'take') take();
        else if (one.kind === 'lose') for (const lost of Array.from(sent)) finish(lost);
        else {
          const ended = pickOf(
            one.kind === 'answer' ? sent : new Set([...waiting, ...sent]),
            one.pick,
          );
          if (ended !== undefined) finish(ended);
        }
        expect(new Set(queue.waiting())).toEqual(waiting);
      }
      // Whatever is left is sent once the worker has answered what it has.
      while (waiting.size > 0) {
        if (take() === 0) {
          expect(sent.size).toBeGreaterThan(0);
          for (const one of Array.from(sent)) finish(one);
        }
      }
      expect(queue.takeBatch()).toEqual([]);
    }),
    { seed: SEED, numRuns: RUNS },
  );
});

test('what is refused for its wait is less the shorter the queue has become', () => {
  const shard = shardOf('t');
  const { large } = shard;
  const first = request(shard, 20_000);
  let now = 0;
  const clock = (): number => now;
  // Nobody stands behind anything: nobody tells, and nothing is refused.
  large.append(first, 0, clock);
  expect(large.isTooLong(1_000_000, 0, 0)).toBe(false);
  const told = request(shard, 20_000);
  large.append(told, 100_000, clock);
  // It waits already for longer than the next one could.
  now = 500;
  expect(large.isTooLong(100_000, 499, now)).toBe(true);
  expect(large.isTooLong(100_000, 501, now)).toBe(false);
  expect(large.isTooLong(99_999, 499, now)).toBe(false);
  now = 1_000;
  large.finished(told, clock);
  // Until another waits to tell, the next is taken.
  expect(large.isTooLong(100_000, 1, now)).toBe(false);
  large.append(request(shard, 20_000), 100_000, clock);
  expect(large.isTooLong(100_000, 999, now)).toBe(true);
  expect(large.isTooLong(200_000, 999, now)).toBe(true);
  expect(large.isTooLong(200_000, 1_001, now)).toBe(false);
  expect(large.isTooLong(50_000, 499, now)).toBe(true);
  expect(large.isTooLong(50_000, 501, now)).toBe(false);
  expect(large.isTooLong(20_000, 1, now)).toBe(false);
});
