/**
 * What idle connections of HTTP/2 hold of a service's memory, when each has filled and evicted its HPACK table before. They are
 * opened from another process; a bystander asks plain Checks meanwhile. Arguments: [DIRECTORY] [small|large|both] [COUNT…].
 * BENCH_CGROUP names a control group that the service is to join, which bounds its memory.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { World } from '../test/support/dataset/world.ts';
import type { IdlersJob, IdlersReady, IdlersShape } from './harness/http2-idlers.ts';
import { type MeasuredService, startMeasured } from './harness/measured-service.ts';
import { fillService, PEER_SCOPE } from './harness/service-data.ts';
import { CHECK_PATH } from './harness/target.ts';

const COUNTS = [2_000, 4_000, 10_000];
const SCALE = 0.02;
const ASK_MS = 5;
const SETTLE_MS = 12_000;
const WARM_MS = 5_000;
/** Longer is a stall. */
const STALL_MS = 50;
const KIB = 1_024;

/** Bytes of a line of /proc/PID/status, which is in KiB. */
function statusBytes(pid: number, name: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) * KIB;
}

/** Asks Checks one behind the other until it is stopped. */
class Bystander {
  #isOver = false;
  #latencies: number[] = [];
  readonly #done: Promise<void>;

  constructor(baseUrl: string) {
    this.#done = this.#ask(baseUrl);
  }

  async #ask(baseUrl: string): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const startMs = performance.now();
      const answer = await fetch(`${baseUrl}${CHECK_PATH}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          ...PEER_SCOPE,
          namespace: 'doc',
          object_id: World.docId(i % 50),
          relation: 'viewer',
          subject_user_id: `u${i % 50}`,
        }),
      });
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`a Check was answered ${answer.status} ${text}`);
      this.#latencies.push(performance.now() - startMs);
      await sleep(ASK_MS);
    }
  }

  /** Of those since the last call. */
  take(): {
    readonly asked: number;
    readonly p99Ms: number;
    readonly maxMs: number;
    readonly stalled: number;
  } {
    const sorted = this.#latencies.toSorted((a, b) => a - b);
    this.#latencies = [];
    const at = (share: number): number =>
      Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 10) / 10;
    const stalled = sorted.filter((ms) => ms > STALL_MS).length;
    return { asked: sorted.length, p99Ms: at(0.99), maxMs: at(1), stalled };
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }
}

async function open(idlers: ChildProcess, job: IdlersJob): Promise<void> {
  idlers.send(job);
  const [{ open: count, problem }] = (await once(idlers, 'message')) as [IdlersReady];
  if (problem !== undefined || count !== job.count) {
    throw new Error(`${count} of ${job.count} connections are open: ${problem ?? ''}`);
  }
}

async function measure(
  service: MeasuredService,
  shape: IdlersShape,
  counts: readonly number[],
): Promise<void> {
  await fillService(service, SCALE);
  const bystander = new Bystander(`http://127.0.0.1:${service.port()}`);
  const idlers = fork(new URL('harness/http2-idlers.ts', import.meta.url));
  const pid = service.pid();
  let before: { readonly count: number; readonly bytes: number } | undefined;
  await sleep(WARM_MS);
  bystander.take();
  for (const count of [0, ...counts]) {
    const startMs = performance.now();
    await open(idlers, { port: service.port(), count, shape });
    const openedMs = performance.now() - startMs;
    await sleep(SETTLE_MS);
    const bytes = statusBytes(pid, 'VmRSS');
    const each =
      before === undefined ? Number.NaN : (bytes - before.bytes) / (count - before.count);
    const result = {
      connections: count,
      openedS: Math.round(openedMs / 100) / 10,
      rssMiB: Math.round(bytes / KIB / KIB),
      peakMiB: Math.round(statusBytes(pid, 'VmHWM') / KIB / KIB),
      kibEach: Math.round((each / KIB) * 10) / 10,
      bystander: bystander.take(),
    };
    process.stdout.write(`${JSON.stringify(result)}\n`);
    before = { count, bytes };
  }
  await bystander.stop();
  idlers.disconnect();
}

const [directory = '.', shape = 'both', ...counts] = process.argv.slice(2);
const service = await startMeasured(resolve(directory));
try {
  await measure(service, shape as IdlersShape, counts.length > 0 ? counts.map(Number) : COUNTS);
} finally {
  await service.stop();
}
