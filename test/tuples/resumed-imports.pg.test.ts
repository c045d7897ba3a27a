import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Instance } from '../support/instance.ts';
import { byLength, inLong, inShort } from '../support/test-length.ts';
import { threeInstances } from '../support/three-instances.ts';
import {
  anyTuple,
  authzOver,
  exported,
  type JsonTuple,
  linesOf,
  plainTuples,
  postLines,
  setOf,
  textOf,
  tuplesOver,
} from './support.ts';

/* Imports that are cut in their middle and sent again, and imports beside which others write. */

const three = threeInstances();

let names = 0;
const fresh = (prefix: string): string => `${prefix}${String(++names)}`;

/** Sends `cutAt` bytes of the lines in chunks, and cuts the connection after `isEnough`. */
async function sendCut(
  instance: Instance,
  query: string,
  text: Buffer,
  cutAt: number,
  chunk: number,
  isEnough: () => Promise<unknown> = () => new Promise((next) => setTimeout(next, 30)),
): Promise<void> {
  const abort = new AbortController();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      for (let at = 0; at < cutAt; at += chunk) {
        controller.enqueue(text.subarray(at, Math.min(cutAt, at + chunk)));
        await new Promise((next) => setImmediate(next));
      }
      await isEnough();
      abort.abort();
    },
  });
  const sent = fetch(`${instance.baseUrl}/v1/tuples:import${query}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${instance.token}`,
      'content-type': 'application/x-ndjson',
    },
    body,
    duplex: 'half',
    signal: abort.signal,
  });
  await expect(sent).rejects.toThrow(/abort/i);
}

/** More rows than a part holds, some twice with other metadata. */
const manyTuples = fc
  .record({
    extra: fc.array(anyTuple, { minLength: 1, maxLength: 30 }),
    count: fc.constantFrom(100, 9_000, byLength(9_000, 18_000)),
  })
  .map(({ extra, count }) => [...plainTuples(count), ...extra, ...plainTuples(50, 40)]);

test('what was cut anywhere, any number of times, and sent again on any instance, is the whole set', async () => {
  await fc.assert(
    fc.asyncProperty(
      manyTuples,
      fc.array(
        fc.record({
          at: fc.double({ min: 0, max: 0.999, noNaN: true }),
          instance: fc.nat(2),
          chunk: fc.constantFrom(1_000, 70_000, 1_000_000),
        }),
        { maxLength: 3 },
      ),
      fc.array(anyTuple, { maxLength: 5 }),
      fc.nat(2),
      async (tuples, cuts, before, last) => {
        const tenantId = fresh('cut');
        const query = `?tenant_id=${tenantId}&import_id=${fresh('import')}`;
        if (before.length > 0) {
          await postLines(three.instances[0], `?tenant_id=${tenantId}`, linesOf(before));
        }
        const text = Buffer.from(linesOf(tuples));
        for (const { at, instance, chunk } of cuts) {
          const cutAt = Math.floor(text.length * at);
          await sendCut(three.instances[instance] as Instance, query, text, cutAt, chunk);
        }
        const done = await postLines(three.instances[last] as Instance, query, text);
        expect(done.status, JSON.stringify(done.body)).toBe(200);
        expect(done.body['received']).toBe(String(tuples.length));
        const expected = setOf(before, tuples);
        for (const one of three.instances) {
          const stored = await exported(one, `?tenant_id=${tenantId}`);
          expect(stored.map(textOf).toSorted()).toEqual(expected);
        }
        // Sent once more it answers the same and writes nothing.
        const again = await postLines(three.instances[0], query, text);
        expect(again.body).toEqual({ ...done.body, resumed_at: String(tuples.length) });
      },
    ),
    { numRuns: byLength(3, 12) },
  );
}, 240_000);

/** Resolves once a part of the only import of a tenant is stored. */
async function partOf(tenantId: string): Promise<void> {
  await expect
    .poll(async () => {
      const { rows } = await three.database.pool.query(
        'select part from tuple_import_part join tuple_import using (import_no) where tenant_id = $1',
        [tenantId],
      );
      return rows.length;
    })
    .toBeGreaterThan(0);
}

inShort(test)(
  'a later attempt goes on where the earlier one ended; another stream under its id is refused',
  async () => {
    const tenantId = fresh('attempts');
    const query = `?tenant_id=${tenantId}&import_id=one`;
    const tuples = plainTuples(12_000);
    const text = Buffer.from(linesOf(tuples));
    const cutAt = Math.floor(text.length * 0.9);
    await sendCut(three.instances[0], query, text, cutAt, 100_000, () => partOf(tenantId));
    const other = await postLines(three.instances[1], query, linesOf(plainTuples(12_000, 1)));
    expect(other).toMatchObject({ status: 412 });
    expect(JSON.stringify(other.body)).toContain('IMPORT_DIFFERS');
    const done = await postLines(three.instances[1], query, text);
    expect(done.status, JSON.stringify(done.body)).toBe(200);
    expect(Number(done.body['resumed_at'])).toBeGreaterThanOrEqual(8_192);
    expect(done.body['written']).toBe('12000');
    const longer = await postLines(three.instances[2], query, linesOf(plainTuples(12_001)));
    expect(longer.status).toBe(412);
    const shorter = await postLines(three.instances[2], query, linesOf(plainTuples(10)));
    expect(shorter.status).toBe(412);
  },
);

inShort(test)('of two attempts at once the one that began first is refused', async () => {
  const tenantId = fresh('two');
  const tuples = plainTuples(9_000);
  const options = { tenantId, importId: 'both' };
  const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>();
  const { promise: hasBegun, resolve: began } = Promise.withResolvers<void>();
  const first = tuplesOver(three.instances[0], 'grpc').importTuples(
    (async function* slow() {
      yield { options };
      began();
      await mayGoOn;
      for (let at = 0; at < tuples.length; at += 1_000)
        yield { tuples: protoOf(tuples.slice(at, at + 1_000)) };
    })(),
  );
  const failed = first.then(
    () => '',
    (error: unknown) => (error as Error).message,
  );
  await hasBegun;
  // The first one has its number before the second one asks for it.
  await new Promise((done) => setTimeout(done, 300));
  const second = await postLines(
    three.instances[1],
    `?tenant_id=${tenantId}&import_id=both`,
    linesOf(tuples),
  );
  expect(second.status, JSON.stringify(second.body)).toBe(200);
  goOn();
  expect(await failed).toContain('later attempt');
  const stored = await exported(three.instances[2], `?tenant_id=${tenantId}`);
  expect(stored.map(textOf).toSorted()).toEqual(setOf(tuples));
});

function protoOf(tuples: readonly JsonTuple[]) {
  return tuples.map(({ namespace, object_id: objectId, relation, subject }) => {
    if (!('user_id' in subject)) throw new Error('a user');
    const kind = { case: 'userId' as const, value: subject.user_id };
    return { namespace, objectId, relation, subject: { kind } };
  });
}

inLong(describe)('beside writers', () => {
  test.each([
    ['into a tenant that holds tuples', 1],
    ['into an empty one', 0],
  ])(
    '%s: nothing that either wrote is lost, and no write waits for long',
    async (_name, held) => {
      const tenantId = fresh('beside');
      const before = plainTuples(held, 900_000);
      if (held > 0) await postLines(three.instances[0], `?tenant_id=${tenantId}`, linesOf(before));
      const tuples = plainTuples(25_000);
      let isDone = false;
      const importing = postLines(
        three.instances[0],
        `?tenant_id=${tenantId}`,
        linesOf(tuples),
      ).finally(() => (isDone = true));
      const written: JsonTuple[] = [];
      const waits: number[] = [];
      const writer = async (n: number): Promise<void> => {
        const client = authzOver(three.instances[n] as Instance);
        for (let i = 0; !isDone && i < 400; i++) {
          // Some are tuples of the import itself.
          const [tuple] = plainTuples(1, i % 3 === 0 ? (i * 61) % 25_000 : 500_000 + n * 1_000 + i);
          const startedMs = performance.now();
          const { consistencyToken } = await client.writeRelationTuples({
            tenantId,
            updates: [{ op: 1, tuple: protoOf([tuple as JsonTuple])[0] as never }],
          });
          waits.push(performance.now() - startedMs);
          written.push(tuple as JsonTuple);
          const other = authzOver(three.instances[(n + 1) % 3] as Instance);
          const { allowed } = await other.check({
            tenantId,
            namespace: 'doc',
            objectId: (tuple as JsonTuple).object_id,
            relation: 'viewer',
            subjectUserId: ((tuple as JsonTuple).subject as { user_id: string }).user_id,
            atLeastConsistencyToken: i % 2 === 0 ? consistencyToken : '',
          });
          expect(allowed).toBe(true);
        }
      };
      await Promise.all([writer(0), writer(1), writer(2)]);
      const done = await importing;
      expect(done.status, JSON.stringify(done.body)).toBe(200);
      expect(written.length).toBeGreaterThan(5);
      const stored = await exported(three.instances[1], `?tenant_id=${tenantId}`);
      expect(stored.map(textOf).toSorted()).toEqual(setOf(before, tuples, written));
      // Far above any wait, and far below the whole import being waited for: a deadlock would be broken after a second.
      expect(Math.max(...waits)).toBeLessThan(20_000);
      for (const one of three.instances) {
        const last = tuples.at(-1) as JsonTuple;
        const { allowed } = await authzOver(one).check({
          tenantId,
          namespace: 'doc',
          objectId: last.object_id,
          relation: 'viewer',
          subjectUserId: (last.subject as { user_id: string }).user_id,
        });
        expect(allowed).toBe(true);
      }
    },
    120_000,
  );
});
