import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { type Service, startService } from '../support/service.ts';
import { byLength } from '../support/test-length.ts';
import {
  exported,
  type JsonTuple,
  linesOf,
  plainTuples,
  postLines,
  setOf,
  textOf,
} from './support.ts';

/* An instance is killed in the middle of an import, and another one goes on with it. */

let database: TestDatabase;
let survivor: Service;
let env: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 1 });
  env = {
    DATABASE_URL: urlOf(database.target),
    GATEWAY_WORKERS: '1',
    // In short the imports are small, and what each row costs is not the subject.
    DEBUG_ASSERTIONS: byLength('', '1'),
    GATEWAY_INDEX_BYTES: String(64 * 1024 * 1024),
  };
  survivor = await startService({ env });
}, 120_000);
afterAll(async () => {
  expect(await survivor.stop()).toBe(0);
  await database.drop();
});

const TUPLES = byLength(9_000, 40_000);
/** Of the lines, how much is sent while it receives: more than what is a part, 8,192. */
const SENT = byLength(0.95, 0.4);

async function tuplesOf(service: Service, tenantId: string): Promise<readonly string[]> {
  const stored = await exported(service, `?tenant_id=${tenantId}`);
  return stored.map(textOf).toSorted();
}

type Moment = {
  readonly name: string;
  /** Tuples that the tenant holds before. */
  readonly held: number;
  /** Of the lines, how much is sent. */
  readonly part: number;
};

const RECEIVING: Moment = { name: 'while it receives', held: 0, part: SENT };
const WRITING: Moment = { name: 'while it writes into an empty tenant', held: 0, part: 1 };
const ADDING: Moment = { name: 'while it writes into one that holds tuples', held: 10, part: 1 };

/** What one kill interrupts: in long each import has an instance of its own. */
const KILLS = byLength([[RECEIVING, ADDING]], [[RECEIVING], [WRITING], [ADDING]]);

type Interrupted = {
  readonly moment: Moment;
  readonly query: string;
  readonly tenantId: string;
  readonly before: readonly JsonTuple[];
  /** Whether the call failed. */
  readonly failed: Promise<boolean>;
};

const tuples = plainTuples(TUPLES);
const text = linesOf(tuples);

/** Begins an import; resolves once it is at its moment. */
async function begin(victim: Service, moment: Moment): Promise<Interrupted> {
  const { held, part } = moment;
  const tenantId = `k${held}-${part * 10}`;
  const before = plainTuples(held, 900_000);
  if (held > 0) await postLines(survivor, `?tenant_id=${tenantId}`, linesOf(before));
  const query = `?tenant_id=${tenantId}&import_id=killed`;
  const sent =
    part === 1
      ? postLines(victim, query, text)
      : fetch(`${victim.baseUrl}/v1/tuples:import${query}`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${victim.token}`,
            'content-type': 'application/x-ndjson',
          },
          // Never ends.
          body: new ReadableStream({
            start: (controller) =>
              controller.enqueue(Buffer.from(text.slice(0, text.length * part))),
          }),
          duplex: 'half',
        });
  const failed = sent.then(
    () => false,
    () => true,
  );
  const isUnderWay = async (): Promise<boolean> => {
    const { rows } = await database.pool.query<{
      is_applying: boolean;
      applied: number;
      is_staging: boolean;
    }>(
      `select i.total is not null as is_applying, i.applied::int as applied,
         exists (select from tuple_import_part p where p.import_no = i.import_no) as is_staging
       from tuple_import i where i.tenant_id = $1 and i.import_id = 'killed'`,
      [tenantId],
    );
    const [row] = rows;
    if (row === undefined) return false;
    if (part < 1) return row.is_staging;
    return held > 0 ? row.applied > 0 : row.is_applying;
  };
  while (!(await isUnderWay())) await sleep(2);
  return { moment, query, tenantId, before, failed };
}

/** The survivor shows it as a whole or not at all, and goes on with it. */
async function goOn({ moment, query, tenantId, before, failed }: Interrupted): Promise<void> {
  expect(await failed, moment.name).toBe(true);
  const seen = await tuplesOf(survivor, tenantId);
  // As a whole or not at all; in chunks any part of it.
  if (moment.held === 0 && seen.length !== TUPLES) expect(seen).toEqual(setOf(before));
  const done = await postLines(survivor, query, text);
  expect(done.status, JSON.stringify(done.body)).toBe(200);
  expect(done.body).toMatchObject({ received: String(TUPLES), written: String(TUPLES) });
  expect(Number(done.body['resumed_at'])).toBeGreaterThan(0);
  expect(await tuplesOf(survivor, tenantId)).toEqual(setOf(before, tuples));
  const [last] = tuples.slice(-1) as [JsonTuple];
  const response = await fetch(`${survivor.baseUrl}/workspace.v1.AuthzService/Check`, {
    method: 'POST',
    headers: { authorization: `Bearer ${survivor.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      tenant_id: tenantId,
      namespace: last.namespace,
      object_id: last.object_id,
      relation: last.relation,
      subject_user_id: (last.subject as { user_id: string }).user_id,
    }),
  });
  expect(await response.json()).toEqual({ allowed: true });
}

test.each(
  KILLS.map((moments) => [moments.map(({ name }) => name).join(', and '), moments] as const),
)(
  '%s',
  async (_name, moments) => {
    const victim = await startService({ env });
    const interrupted: Interrupted[] = [];
    for (const moment of moments) interrupted.push(await begin(victim, moment));
    await victim.kill();
    for (const one of interrupted) await goOn(one);
  },
  120_000,
);
