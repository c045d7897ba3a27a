/**
 * Yields µs of CPU, of both threads, for a round trip between a thread and its worker, one at a time, by what carries it: what the
 * hop of a batch can cost at least, without anything in it. Variants take turns; medians of the rounds.
 * Run: npm run bench -- thread-hops, with BENCH_ROUNDS, BENCH_TRIPS.
 */
import { once } from 'node:events';
import {
  isMainThread,
  MessageChannel,
  type MessagePort,
  Worker,
  workerData,
} from 'node:worker_threads';

/** What carries the request and the reply. */
const VARIANTS = [
  /** A number through a port, a short buffer back. */
  'port, buffer',
  /** A number both ways, as if the answers lay in shared memory. */
  'port, number',
  /** The worker blocks in Atomics.wait, which holds up its own event loop; a number back through a port. */
  'wait, port',
  /** Atomics.waitAsync on both sides. */
  'waitAsync',
  /** The worker polls shared memory for up to 20 µs after each request, and is told through the port only if it does not. */
  'spin 20 us, port',
] as const;
type Variant = (typeof VARIANTS)[number];
type Data = { readonly variant: Variant; readonly port: MessagePort; readonly cells: Int32Array };

const TRIPS = Number(process.env['BENCH_TRIPS'] ?? 5_000);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const SPIN_MS = 0.02;
const ANSWER_BYTES = 120;
/** Cells: requests, replies, whether the worker polls. */
const ASKED = 0;
const TOLD = 1;
const POLLS = 2;

if (isMainThread) await compare();
else serve(workerData as Data);

async function compare(): Promise<void> {
  const pairs = VARIANTS.map((variant) => {
    const { port1, port2 } = new MessageChannel();
    const cells = new Int32Array(new SharedArrayBuffer(64));
    const data: Data = { variant, port: port2, cells };
    const worker = new Worker(new URL(import.meta.url), {
      workerData: data,
      transferList: [port2],
    });
    return { variant, port: port1, cells, worker, costs: [] as number[] };
  });
  await Promise.all(pairs.map(({ worker }) => once(worker, 'online')));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { variant, port, cells, costs } of pairs) {
      const before = process.cpuUsage();
      await roundTrips(variant, port, cells);
      const { user, system } = process.cpuUsage(before);
      if (round > 0) costs.push((user + system) / TRIPS);
    }
  }
  const cpuUs = pairs.map(({ variant, costs }) => {
    const median = costs.toSorted((a, b) => a - b)[costs.length >> 1] ?? Number.NaN;
    return [variant, Math.round(median * 10) / 10];
  });
  console.log(JSON.stringify({ bench: 'thread-hops', cpuUs: Object.fromEntries(cpuUs) as object }));
  await Promise.all(pairs.map(({ worker }) => worker.terminate()));
}

async function roundTrips(variant: Variant, port: MessagePort, cells: Int32Array): Promise<void> {
  if (variant === 'waitAsync') {
    for (let trip = 0; trip < TRIPS; trip++) {
      const told = Atomics.load(cells, TOLD);
      Atomics.add(cells, ASKED, 1);
      Atomics.notify(cells, ASKED);
      const waiting = Atomics.waitAsync(cells, TOLD, told);
      if (waiting.async) await waiting.value;
    }
    return;
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = TRIPS;
  const ask = (): void => {
    if (left === 0) return resolve();
    left -= 1;
    if (variant === 'port, buffer' || variant === 'port, number') return port.postMessage(left);
    Atomics.add(cells, ASKED, 1);
    if (variant === 'wait, port') Atomics.notify(cells, ASKED);
    // Who polls takes it; who has stopped is told.
    else if (Atomics.exchange(cells, POLLS, 0) === 0) port.postMessage(left);
  };
  port.on('message', ask);
  ask();
  await promise;
  port.off('message', ask);
}

function serve({ variant, port, cells }: Data): void {
  if (variant === 'waitAsync') {
    // Such a wait alone does not keep a thread.
    port.on('message', () => undefined);
    return void serveAsync(cells);
  }
  if (variant === 'wait, port') {
    for (let seen = 0; ; seen++) {
      Atomics.wait(cells, ASKED, seen);
      port.postMessage(seen);
    }
  }
  const answer = (): void => {
    if (variant === 'port, buffer') port.postMessage(new ArrayBuffer(ANSWER_BYTES));
    else port.postMessage(1);
  };
  port.on('message', () => {
    answer();
    if (variant !== 'spin 20 us, port') return;
    Atomics.store(cells, POLLS, 1);
    for (let endMs = performance.now() + SPIN_MS; performance.now() < endMs;) {
      if (Atomics.load(cells, POLLS) === 1) continue;
      answer();
      Atomics.store(cells, POLLS, 1);
      endMs = performance.now() + SPIN_MS;
    }
    // Asked in the last moment: nobody else will tell.
    if (Atomics.exchange(cells, POLLS, 0) === 0) answer();
  });
}

async function serveAsync(cells: Int32Array): Promise<never> {
  for (let seen = 0; ; seen++) {
    const waiting = Atomics.waitAsync(cells, ASKED, seen);
    if (waiting.async) await waiting.value;
    Atomics.add(cells, TOLD, 1);
    Atomics.notify(cells, TOLD);
  }
}
