import { describe, expect, test } from 'vitest';
import { TupleUpdate_Op as Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { threeInstances } from '../support/three-instances.ts';
import { getLines, postLines, tuplesOver } from './support.ts';

/* When tuples were written, from their write or import to their export. */

const three = threeInstances();
let tenants = 0;
const newTenant = (): string => `w${String(++tenants)}`;

const tuple = (objectId: string) => ({
  namespace: 'doc',
  objectId,
  relation: 'owner',
  subject: { kind: { case: 'userId' as const, value: 'ann' } },
});
const line = (id: string, more: object = {}): string =>
  `${JSON.stringify({ tuple: { namespace: 'doc', object_id: id, relation: 'owner', subject: { user_id: 'ann' } }, ...more })}\n`;

/** Seconds since the epoch by object, of a stream of one wire. */
async function timesIn(
  tenantId: string,
  wire: 'connect-json' | 'connect' | 'grpc',
): Promise<Map<string, { seconds: bigint; nanos: number } | undefined>> {
  const times = new Map<string, { seconds: bigint; nanos: number } | undefined>();
  const client = tuplesOver(three.instances[1], wire);
  for await (const part of client.streamTuples({ tenantId, withWrittenAt: true })) {
    expect(part.writtenAt).toHaveLength(part.tuples.length);
    part.tuples.forEach(({ objectId }, at) => times.set(objectId, part.writtenAt[at]));
  }
  return times;
}

describe('a tuple that is written', () => {
  test.each(['connect-json', 'connect', 'grpc'] as const)(
    'has its time, which a replacement keeps, over %s',
    async (wire) => {
      const tenantId = newTenant();
      const client = tuplesOver(three.instances[0]);
      const before = BigInt(Math.floor(Date.now() / 1000)) - 60n;
      const write = (...ids: string[]) =>
        client.writeTuples({
          tenantId,
          updates: ids.map((id) => ({ op: Op.INSERT, tuple: tuple(id) })),
        });
      await write('a', 'b');
      const first = await timesIn(tenantId, wire);
      expect(first.get('a')?.seconds).toBeGreaterThan(before);
      expect(first.get('b')).toEqual(first.get('a'));
      await write('a', 'c');
      const second = await timesIn(tenantId, wire);
      expect(second.get('a')).toEqual(first.get('a'));
      const change = await three.database.pool.query(
        `select (extract(epoch from created_at) * 1000000)::bigint::text as us
         from tuple_change where tenant_id = $1 order by seq`,
        [tenantId],
      );
      const us = ({ seconds, nanos }: { seconds: bigint; nanos: number }): string =>
        String(seconds * 1_000_000n + BigInt(nanos / 1_000));
      expect(
        ['a', 'c'].map((id) => us(second.get(id) as { seconds: bigint; nanos: number })),
      ).toEqual(change.rows.map((row) => row.us));
    },
  );

  test('before times were kept has none', async () => {
    const tenantId = newTenant();
    const updates = [{ op: Op.INSERT, tuple: tuple('old') }];
    await tuplesOver(three.instances[0]).writeTuples({ tenantId, updates });
    await three.database.pool.query(
      'update relation_tuple set written_at = null where tenant_id = $1',
      [tenantId],
    );
    expect((await timesIn(tenantId, 'grpc')).get('old')).toMatchObject({ seconds: 0n, nanos: 0 });
    const { lines } = await getLines(three.instances[0], `?tenant_id=${tenantId}&written_at=true`);
    expect(Object.keys(lines[1] ?? {})).toEqual(['tuple']);
  });

  test('shows no time that was not asked for', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    await client.writeTuples({ tenantId, updates: [{ op: Op.INSERT, tuple: tuple('a') }] });
    for await (const part of client.streamTuples({ tenantId })) expect(part.writtenAt).toEqual([]);
    const { lines } = await getLines(three.instances[0], `?tenant_id=${tenantId}`);
    expect(Object.keys(lines[1] ?? {})).toEqual(['tuple']);
  });
});

describe('an import', () => {
  const TIMES = {
    a: '2020-02-29T23:59:59.123456Z',
    b: '0001-01-01T00:00:00Z',
    c: '1969-12-31T23:59:59.999999Z',
  };

  test.each([
    ['into an empty tenant', false],
    ['beside what is stored', true],
  ])('%s keeps the times that it has', async (_name, hasTuples) => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0]);
    const updates = ['a', 'z'].map((id) => ({ op: Op.INSERT, tuple: tuple(id) }));
    if (hasTuples) await client.writeTuples({ tenantId, updates });
    const stored = (await timesIn(tenantId, 'grpc')).get('a');
    const body = Object.entries(TIMES).map(([id, time]) => line(id, { written_at: time }));
    const { status } = await postLines(
      three.instances[0],
      `?tenant_id=${tenantId}`,
      [...body, line('now')].join(''),
    );
    expect(status).toBe(200);
    const exported = await getLines(three.instances[2], `?tenant_id=${tenantId}&written_at=true`);
    const times = new Map(
      exported.lines.flatMap((one) =>
        'tuple' in one
          ? [[(one['tuple'] as { object_id: string }).object_id, one['written_at'] as string]]
          : [],
      ),
    );
    expect([times.get('b'), times.get('c')]).toEqual([TIMES.b, TIMES.c]);
    expect(Date.parse(times.get('now') ?? '')).toBeGreaterThan(Date.parse('2026-01-01T00:00:00Z'));
    if (!hasTuples) expect(times.get('a')).toBe(TIMES.a);
    else expect((await timesIn(tenantId, 'connect')).get('a')).toEqual(stored);
    // What was exported can be imported elsewhere.
    const elsewhere = newTenant();
    const again = exported.lines.map((one) => `${JSON.stringify(one)}\n`).join('');
    await postLines(three.instances[1], `?tenant_id=${elsewhere}`, again);
    expect(await timesIn(elsewhere, 'grpc')).toEqual(await timesIn(tenantId, 'grpc'));
  });

  test('by messages keeps them, too, and refuses too few by name', async () => {
    const tenantId = newTenant();
    const client = tuplesOver(three.instances[0], 'grpc');
    const send = (writtenAt: { seconds: bigint; nanos: number }[]) =>
      client.importTuples(
        (async function* messages() {
          yield await Promise.resolve({ options: { tenantId } });
          yield { tuples: [tuple('a'), tuple('b')], writtenAt };
        })(),
      );
    await expect(send([{ seconds: 5n, nanos: 0 }])).rejects.toThrow(
      'written_at: must have one for each',
    );
    await expect(
      send([
        { seconds: 5n, nanos: -1 },
        { seconds: 0n, nanos: 0 },
      ]),
    ).rejects.toThrow('tuples[0].written_at');
    await send([
      { seconds: 5n, nanos: 7_000 },
      { seconds: 0n, nanos: 0 },
    ]);
    const times = await timesIn(tenantId, 'connect-json');
    expect(times.get('a')).toMatchObject({ seconds: 5n, nanos: 7_000 });
    expect(times.get('b')?.seconds).toBeGreaterThan(1_700_000_000n);
  });

  test.each([
    ['no time', '"soon"'],
    ['a number', '5'],
    ['beyond the years', '"10000-01-01T00:00:00Z"'],
  ])('refuses a line whose time is %s', async (_name, time) => {
    const body = `${line('a').trimEnd().slice(0, -1)},"written_at":${time}}\n`;
    const answer = await postLines(three.instances[0], `?tenant_id=${newTenant()}`, body);
    expect(answer.status).toBe(400);
    expect(answer.body['message']).toContain('line 1: written_at must be a time');
  });
});
