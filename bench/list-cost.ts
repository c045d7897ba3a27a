/**
 * Yields objects a CPU-second of ListObjects over HTTP JSON: answers of 100 to 1,000 documents, one of each compared. Beside it, in the
 * same rounds, a raw uWebSockets.js server in this process that sends bodies of that length and does nothing else.
 * Run: npm run bench -- list-cost [-- DIRECTORY…]; with directories of other checkouts these take turns.
 * BENCH_SECONDS (2) a round, BENCH_ROUNDS (5). Prints one JSON line a checkout.
 */
import { App, us_socket_local_port } from 'uWebSockets.js';
import { World } from '../test/support/dataset/world.ts';
import { closedLoop, postRequest } from './harness/closed-loop.ts';
import { type MeasuredService, startMeasured } from './harness/measured-service.ts';
import { median } from './harness/median.ts';
import { PEER_SCOPE, fillService } from './harness/service-data.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 2);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const CALLERS = 8;
const PATH = '/workspace.v1.AuthzService/ListObjects';
const directories = process.argv.length > 2 ? process.argv.slice(2) : [process.cwd()];

type List = { readonly request: Buffer; readonly body: string; readonly objects: number };

function listsOf(world: World): List[] {
  const lists: List[] = [];
  for (let tries = 0; lists.length < 100 && tries < 2_000; tries++) {
    const user = world.random.below(world.users);
    const ids = world.docFolder.flatMap((_, doc) =>
      world.canView(doc, user) ? [World.docId(doc)] : [],
    );
    if (ids.length < 100 || ids.length > 1_000) continue;
    const question = { namespace: 'doc', relation: 'viewer', subject_user_id: `u${user}` };
    lists.push({
      request: postRequest(PATH, JSON.stringify({ ...PEER_SCOPE, ...question })),
      body: JSON.stringify({ object_ids: ids.toSorted((a, b) => (a < b ? -1 : 1)) }),
      objects: ids.length,
    });
  }
  return lists;
}

async function compareAll(port: number, lists: readonly List[]): Promise<void> {
  for (const { request, body } of lists) {
    const [, sent = ''] = request.toString().split('\r\n\r\n');
    const response = await fetch(`http://127.0.0.1:${port}${PATH}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: sent,
    });
    const found = await response.text();
    if (found !== body) throw new Error(`wrong list: ${found.slice(0, 200)}`);
  }
}

type Contestant = {
  readonly service: MeasuredService;
  readonly lists: readonly List[];
  readonly perCpuSecond: number[];
  readonly p99Ms: number[];
};

async function round(contestant: Contestant, isCounted: boolean): Promise<void> {
  const { service, lists } = contestant;
  let at = 0;
  let objects = 0;
  const before = service.cpu();
  const result = await closedLoop(service.port(), CALLERS, SECONDS, () => {
    const list = lists[at++ % lists.length] as List;
    objects += list.objects;
    return list.request;
  });
  const after = service.cpu();
  if (!isCounted) return;
  const cpu = after.service - before.service + after.postgres - before.postgres;
  contestant.perCpuSecond.push(objects / cpu);
  contestant.p99Ms.push(result.latencies[Math.floor(result.requests * 0.99)] ?? Number.NaN);
}

/** Lists a second of the bare server, which shares this process with the generator: a bound, not a CPU figure. */
async function bareRound(port: number, lists: readonly List[]): Promise<number> {
  let at = 0;
  const result = await closedLoop(
    port,
    CALLERS,
    SECONDS,
    () => lists[at++ % lists.length]?.request,
  );
  return result.requests / result.seconds;
}

const contestants: Contestant[] = [];
try {
  for (const directory of directories) {
    const service = await startMeasured(directory);
    const lists: List[] = [];
    contestants.push({ service, lists, perCpuSecond: [], p99Ms: [] });
    lists.push(...listsOf(await fillService(service, Number(process.env['BENCH_SCALE'] ?? 1))));
    await compareAll(service.port(), lists);
  }
  const [{ lists } = { lists: [] }] = contestants;
  const body = 'x'.repeat(
    Math.round(lists.reduce((sum, list) => sum + list.body.length, 0) / lists.length),
  );
  const port = await new Promise<number>((resolve) => {
    App()
      .post(PATH, (res) => {
        res.onAborted(() => undefined);
        res.onData((_, isLast) => {
          if (isLast) res.cork(() => res.end(body));
        });
      })
      .listen('127.0.0.1', 0, (socket) =>
        resolve(socket === false ? 0 : us_socket_local_port(socket)),
      );
  });
  const bare: number[] = [];
  for (let at = 0; at <= ROUNDS; at++) {
    for (const one of at % 2 === 0 ? contestants : contestants.toReversed())
      await round(one, at > 0);
    const rate = await bareRound(port, lists);
    if (at > 0) bare.push(rate);
  }
  const first = contestants[0]?.perCpuSecond ?? [];
  for (const { service, perCpuSecond, p99Ms } of contestants) {
    const ratio = median(perCpuSecond.map((value, i) => value / (first[i] ?? Number.NaN)));
    const figures = {
      objectsPerCpuSecond: Math.round(median(perCpuSecond)),
      p99Ms: Math.round(median(p99Ms)),
      toFirst: Number(ratio.toFixed(3)),
      bareListsPerSecond: Math.round(median(bare)),
    };
    console.log(JSON.stringify({ bench: 'list-cost', directory: service.directory, ...figures }));
  }
} finally {
  for (const { service } of contestants) await service.stop();
}
process.exit(0);
