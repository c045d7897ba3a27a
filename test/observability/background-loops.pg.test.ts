/* A loop in the background that fails is seen by whoever looks: in /readyz, the series and the log. */
import { expect, onTestFinished, test } from 'vitest';
import { createPool } from '../../src/store/postgres/pool.ts';
import { freshDatabase } from '../notify/support/notify-process.ts';
import { serveNotify } from '../notify/support/notify-service.ts';
import { poll } from '../notify/support/poll.ts';
import type { LogLine } from '../support/child-service.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { serveService } from '../support/serve-service.ts';

type Served = { readonly metricsUrl: string; readonly log: readonly LogLine[] };

async function readiness({ metricsUrl }: Served): Promise<readonly [number, unknown]> {
  const response = await fetch(`${metricsUrl}/readyz`);
  return [response.status, await response.json()];
}

async function seriesOf({ metricsUrl }: Served, start: string): Promise<readonly string[]> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  return text.split('\n').filter((line) => line.startsWith(start));
}

/** Runs `broken` on the database of the service, looks what it says of `loop`, and mends it by `mended`. */
async function expectSeen(
  service: Served,
  prefix: string,
  loop: string,
  sqlstate: string,
  [broken, mended]: readonly [() => Promise<unknown>, () => Promise<unknown>],
): Promise<void> {
  const sound = [200, { status: 'ready', degraded: [] }];
  const failing = `${prefix}_background_failing{loop="${loop}"}`;
  await poll(() => seriesOf(service, failing)).toEqual([`${failing} 0`]);
  expect(await readiness(service)).toEqual(sound);
  await broken();
  await poll(() => readiness(service)).toEqual([200, { status: 'ready', degraded: [loop] }]);
  expect(await seriesOf(service, failing)).toEqual([`${failing} 1`]);
  const [failed] = await seriesOf(
    service,
    `${prefix}_background_runs_total{loop="${loop}",outcome="failed"}`,
  );
  expect(Number(failed?.split(' ').at(-1))).toBeGreaterThanOrEqual(3);
  const lines = service.log.filter((line) => line['loop'] === loop);
  expect(
    lines.map(({ level, msg, failures, sqlstate: state }) => [level, msg, failures, state]),
  ).toEqual([
    ['warn', 'background_failed', 1, sqlstate],
    ['error', 'background_failed', 3, sqlstate],
  ]);
  await mended();
  await poll(() => readiness(service)).toEqual(sound);
  expect(await seriesOf(service, failing)).toEqual([`${failing} 0`]);
  expect(service.log.at(-1)).toMatchObject({ level: 'warn', msg: 'background_recovered', loop });
}

test('claims of deliveries that fail, each time, are no silence', async () => {
  const database = await freshDatabase();
  const connectionString = database['DATABASE_URL'] ?? '';
  const service = await serveNotify(database);
  const pool = createPool({ connectionString }, { max: 1, applicationName: 'test' });
  onTestFinished(() => pool.end());
  const { rows } = await pool.query<{ signature: string }>(
    `select p.oid::regprocedure::text as signature from pg_proc p
     where p.proname = 'claim' and p.pronamespace = 'notify'::regnamespace`,
  );
  const signature = rows[0]?.signature ?? '';
  const gone = signature.replace('.claim(', '.claim_gone(');
  await expectSeen(service, 'notify', 'claims_webhook', '42883', [
    () => pool.query(`alter function ${signature} rename to claim_gone`),
    () => pool.query(`alter function ${gone} rename to claim`),
  ]);
});

test('so it is with the upkeep of the authorization service', async () => {
  const database = await createTestDatabase({ poolMax: 1 });
  onTestFinished(() => database.drop());
  const service = await serveService({
    DATABASE_URL: urlOf(database.target),
    GATEWAY_CHANGE_RETENTION_SECONDS: '1',
  });
  onTestFinished(async () => void (await service.stop()));
  await expectSeen(service, 'gatehouse', 'retention', '42703', [
    () => database.pool.query('alter table tuple_change rename column created_at to made_at'),
    () => database.pool.query('alter table tuple_change rename column made_at to created_at'),
  ]);
});
