import { expect, test } from 'vitest';
import { BatchMemory, handedBufferOf } from '../../src/protocol/batch-memory.ts';
import type { AnswerBatch, RequestBatch } from '../../src/protocol/messages.ts';
import {
  ANSWER_ALLOWED,
  ANSWER_BODY,
  ANSWER_DENIED,
  rawOpcode,
} from '../../src/protocol/messages.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { ShardHost } from '../../src/workers/host/shard-host.ts';
import { WORKER_DEFAULTS } from '../../src/workers/host/worker-settings.ts';
import { PackingShardIndex } from '../../src/workers/indexes/packing-index.ts';
import { ownAnswers } from '../../src/workers/jobs/answer-writer.ts';
import { PendingRawRequest } from '../../src/workers/queues/pending-request.ts';
import { ShardQueue } from '../../src/workers/queues/shard-queue.ts';
import { createPiscinaTransport } from '../../src/workers/slot/piscina-transport.ts';
import { batchOfRequests } from '../../src/workers/slot/request-batcher.ts';
import { MemoryShardSource } from './memory-shard-source.ts';
import { MODEL_VERSION, scopeOf, viewer } from './pool-fixture.ts';

const SHARD = { projectId: 'p', tenantId: '' };
const EXPECTED = { projectId: '', tenantId: '', token: '' };
const CONTROL: RequestBatch = {
  scopes: [],
  tokens: [''],
  raw: new Float64Array(0),
  bodies: new Uint8Array(0),
  requests: [],
  cancelled: [],
  control: [],
};

/** A host with one model, and what it posts outside of replies. */
function startHost(source: MemoryShardSource): { host: ShardHost; posted: AnswerBatch[] } {
  const posted: AnswerBatch[] = [];
  const settings = {
    ...WORKER_DEFAULTS,
    slot: 0,
    poolMax: 3,
    indexBytesMax: 64 * 1024 * 1024,
    pollMs: 3_600_000,
    // The store in memory needs none.
    database: { connectionString: '' },
  };
  const host = new ShardHost({
    settings,
    clock: systemClock,
    source,
    createIndex: (shared, user) => new PackingShardIndex(shared, user),
    post: (answers) => posted.push(ownAnswers(answers)),
    underEvaluation: new Float64Array(1),
  });
  host.start();
  const model = {
    kind: 'setModel',
    ackId: 0,
    projectId: 'p',
    modelVersion: MODEL_VERSION,
  } as const;
  host.handle({ ...CONTROL, control: [{ ...model, modelJson: '' }] });
  return { host, posted };
}

function request(id: number, minRevision: number, method: 'check' | 'batchCheck', body: object) {
  const shard = new ShardQueue(SHARD.projectId, SHARD.tenantId, 0);
  const bytes = Buffer.from(JSON.stringify(body));
  const scope = scopeOf(SHARD, minRevision);
  return new PendingRawRequest(
    id,
    shard,
    scope,
    rawOpcode(method, 'json'),
    bytes,
    EXPECTED,
    () => {},
  );
}

function item(objectId: string, userId: string): object {
  return {
    namespace: 'doc',
    object_id: objectId,
    relation: 'viewer',
    subject_user_id: userId,
  };
}

/** Answers by request id, of replies and posts. */
function answersOf(batches: readonly AnswerBatch[]): ReadonlyMap<number, number> {
  return new Map(
    batches.flatMap(({ ids, kinds }) => [...ids].map((id, i) => [id, kinds[i] ?? 0] as const)),
  );
}

test('what waits beyond the reply reads its own body, whatever the gateway writes there next', async () => {
  const source = new MemoryShardSource();
  source.commit(SHARD, [viewer('insert', 'a', 'u')]);
  const { host, posted } = startHost(source);
  try {
    const memory = new BatchMemory();
    const transport = { space: memory.acquire.bind(memory) };
    const waiting = [
      request(1, 2, 'check', item('late', 'u')),
      request(2, 2, 'check', item('late', 'stranger')),
      request(3, 2, 'batchCheck', { items: [item('late', 'u'), item('a', 'u')] }),
    ];
    const batch = batchOfRequests(waiting, [], [], transport);
    expect(batch.bodies.buffer).toBeInstanceOf(SharedArrayBuffer);
    const reply = host.handle(batch);
    expect(reply.ids).toHaveLength(0);
    // The reply frees the memory, and the next batch lies in it.
    memory.release(memory.indexOf(batch));
    const next = batchOfRequests(
      [request(4, 0, 'check', item('a', 'nobody-with-quite-a-long-name'.repeat(8)))],
      [],
      [],
      transport,
    );
    expect(next.bodies.buffer).toBe(batch.bodies.buffer);
    const change = source.commit(SHARD, [viewer('insert', 'late', 'u')]);
    posted.push(ownAnswers(host.handle(next)));
    const changed = { ...CONTROL, control: [{ kind: 'committed', change } as const] };
    posted.push(ownAnswers(host.handle(changed)));
    await expect.poll(() => answersOf(posted).size).toBe(4);
    expect(Object.fromEntries(answersOf(posted))).toEqual({
      1: ANSWER_ALLOWED,
      2: ANSWER_DENIED,
      3: ANSWER_BODY,
      4: ANSWER_DENIED,
    });
    const bodies = posted.map(({ bodies: bytes }) => Buffer.from(bytes).toString()).join('');
    expect(JSON.parse(bodies)).toMatchObject({ results: [{ allowed: true }, { allowed: true }] });
  } finally {
    host.stop();
  }
});

test('memory that is in use, or too little, is not given out', () => {
  const memory = new BatchMemory();
  const first = memory.acquire(1, 100);
  const second = memory.acquire(512, 1024 * 1024);
  expect(first?.raw.buffer).not.toBe(second?.raw.buffer);
  expect(memory.acquire(1, 1)).toBeNull();
  if (first === null) throw new Error('there was room');
  memory.release(memory.indexOf(first));
  expect(memory.acquire(1, 2 * 1024 * 1024)).toBeNull();
  expect(memory.acquire(1, 1)?.raw.buffer).toBe(first.raw.buffer);
});

test('a long body is written where it is handed over from, a short one into shared memory', async () => {
  const settings = (): never => {
    throw new Error('it is not started');
  };
  const transport = createPiscinaTransport({ settings })(0);
  const long = transport.space(1, 16 * 1024 + 1);
  const short = transport.space(1, 16 * 1024);
  if (long === null || short === null) throw new Error('there is space for both');
  expect(handedBufferOf(long)?.byteLength).toBeGreaterThan(16 * 1024);
  expect(long.bodies).toHaveLength(16 * 1024 + 1);
  expect(handedBufferOf(short)).toBeNull();
  expect(short.bodies.buffer).toBeInstanceOf(SharedArrayBuffer);
  await transport.stop();
});
