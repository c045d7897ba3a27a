/**
 * Yields the processor time of a Check by @gatehouse/client over that of a bare `fetch` of the same BatchCheck, both in
 * this process, one at a time; and of 100 Checks that are asked at once over one `fetch` of their batch. Turns alternate
 * between the two; the median of their ratios counts.
 * Run: npm run bench -- client-overhead, with BENCH_SECONDS (of a turn) and BENCH_ROUNDS. Prints one JSON line.
 */
import { GatehouseClient, type Question } from '../clients/typescript/src/index.ts';
import { startService } from '../test/support/service.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 1);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 20);
const AT_ONCE = 100;

type Way = { readonly name: string; readonly ask: () => Promise<unknown> };

/** Microseconds of this process's processor time for each call of a turn. */
async function turnOf({ ask }: Way): Promise<number> {
  const end = performance.now() + SECONDS * 1_000;
  const before = process.cpuUsage();
  let calls = 0;
  while (performance.now() < end) {
    await ask();
    calls += 1;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const service = await startService();
try {
  const { baseUrl, token } = service;
  const client = new GatehouseClient({ baseUrl, token });
  const object = { namespace: 'resource', objectId: 'plan', relation: 'viewer' };
  await client.write([{ ...object, subject: 'ann' }]);
  const question: Question = { ...object, subject: 'ann' };
  const questions = Array.from({ length: AT_ONCE }, () => question);
  const bare = async (count: number): Promise<unknown> => {
    const items = Array.from({ length: count }, () => ({
      question: {
        namespace: object.namespace,
        objectId: object.objectId,
        relation: object.relation,
        subject: { userId: 'ann' },
      },
    }));
    const response = await fetch(`${baseUrl}/gatehouse.v1.QueryService/BatchCheck`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ items }),
    });
    return response.json();
  };
  const pairs = {
    one: [
      { name: 'fetch', ask: () => bare(1) },
      { name: 'client', ask: () => client.check(question) },
    ],
    hundred: [
      { name: 'fetch', ask: () => bare(AT_ONCE) },
      { name: 'client', ask: () => client.checkAll(questions) },
    ],
  } as const;
  const result: Record<string, unknown> = { bench: 'client-overhead', rounds: ROUNDS };
  for (const [name, [reference, measured]] of Object.entries(pairs)) {
    await turnOf(reference);
    await turnOf(measured);
    const bareUs: number[] = [];
    const clientUs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bareUs.push(await turnOf(reference));
      clientUs.push(await turnOf(measured));
    }
    const ratios = clientUs.map((value, round) => value / (bareUs[round] ?? Number.NaN));
    result[name] = {
      fetch_us: Math.round(median(bareUs)),
      client_us: Math.round(median(clientUs)),
      ratio: Number(median(ratios).toFixed(2)),
    };
  }
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  await service.stop();
}
