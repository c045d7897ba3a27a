// Lists and runs the long benchmarks; yields nothing by itself.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A benchmark that is a program of its own and prints one JSON line a result. */
export type Program = {
  readonly name: string;
  readonly yields: string;
  readonly file: string;
  readonly nodeFlags?: readonly string[];
};

/** Every long benchmark, by its name on the command line. */
export const PROGRAMS: readonly Program[] = [
  {
    name: 'batch-steps',
    yields: 'nanoseconds an item of a BatchCheck in a worker, step by step [DATA_DIR] [ROUNDS]',
    file: 'bench/batch-steps.ts',
  },
  {
    name: 'client-overhead',
    yields: 'processor time of a Check by @gatehouse/client over that of a bare fetch',
    file: 'bench/client-overhead.ts',
  },
  {
    name: 'engine-caches',
    yields: 'checks a second with each cache of the engine over those without it [ROUNDS]',
    file: 'bench/engine-caches.ts',
  },
  {
    name: 'engine-library',
    yields:
      'time of a Check by @gatehouse/engine over one by the evaluator of the service [ROUNDS]',
    file: 'bench/engine-library.ts',
  },
  {
    name: 'engine-peers',
    yields: 'checks a second of the engine alone, one thread [DATA_DIR] [ROUNDS]',
    file: 'bench/engine-peers.ts',
  },
  {
    name: 'engine-shapes',
    yields: 'checks a second of the engine by shape of the model, allowed and denied [ROUNDS]',
    file: 'bench/engine-shapes.ts',
  },
  {
    name: 'explain',
    yields: 'CPU time and reads of Explain over those of the general evaluation',
    file: 'bench/explain.ts',
  },
  {
    name: 'fresh-clone',
    yields: 'seconds of CPU from a fresh clone until ready, and its megabytes [COMMIT] [ROUNDS]',
    file: 'bench/fresh-clone.ts',
  },
  {
    name: 'idle-connections',
    yields:
      'KiB of a service that idle connections of HTTP/2 hold each [DIRECTORY] [small|large|both] [COUNT…]',
    file: 'bench/idle-connections.ts',
  },
  {
    name: 'index-load',
    yields: 'tuples a second from rows to a loaded index [DATA_DIR]',
    file: 'bench/index-load.ts',
  },
  {
    name: 'index-memory',
    yields: 'bytes of the index a tuple, without distinct strings [DATA_DIR]',
    file: 'bench/index-memory.ts',
    nodeFlags: ['--expose-gc'],
  },
  {
    name: 'index-update',
    yields: 'microseconds an insert or delete in a loaded index [DATA_DIR] [COPIES]',
    file: 'bench/index-update.ts',
  },
  {
    name: 'list-cost',
    yields: 'objects a CPU-second of ListObjects over HTTP JSON, beside bare bodies [DIRECTORY…]',
    file: 'bench/list-cost.ts',
  },
  {
    name: 'list-exclusions',
    yields:
      'objects a CPU-second of lists over `but not` and `and`, whole and in pages [DIRECTORY…]',
    file: 'bench/list-exclusions.ts',
  },
  {
    name: 'list-exclusions-engine',
    yields: 'the same in the engine alone, with reads, and bytes of a list of 100,000',
    file: 'bench/list-exclusions-engine.ts',
  },
  {
    name: 'list-subjects',
    yields: 'milliseconds of a ListSubjects of 100,000 users, whole and in pages [USERS] [ROUNDS]',
    file: 'bench/list-subjects.ts',
  },
  {
    name: 'notify-commits',
    yields: 'commits a second beside notifications, and with one inside of each [SECONDS] [ROUNDS]',
    file: 'bench/notify-commits.ts',
  },
  {
    name: 'odd-neighbour',
    yields:
      'times of Checks of one tenant beside another one whose long bodies are decoded [DIRECTORY]',
    file: 'bench/odd-neighbour.ts',
  },
  {
    name: 'runner-events',
    yields:
      'how 0 to 256 readers of the event stream change a step of many lines [LINES] [READERS]',
    file: 'bench/runner-events.ts',
  },
  {
    name: 'runner-scheduler',
    yields: 'milliseconds that scheduler and disk add to runs of 1 to 1,000 jobs',
    file: 'bench/runner-scheduler.ts',
  },
  {
    name: 'runner-start',
    yields:
      'milliseconds until the command of the runner has answered, and until a first step [ROUNDS]',
    file: 'bench/runner-start.ts',
  },
  {
    name: 'runner-storage',
    yields: 'milliseconds of logs, journals, recovery and sandboxes of a workflow run',
    file: 'bench/runner-storage.ts',
  },
  {
    name: 'runner-workspaces',
    yields:
      'milliseconds and peak disk of a run whose legs have a workspace each [DIR] [LEGS] [JOBS] [MB] [ROUNDS]',
    file: 'bench/runner-workspaces.ts',
  },
  {
    name: 'runner-vs-act',
    yields:
      'milliseconds from request to the end of a workflow run, beside act [ROUNDS] [STRATEGY] [CASE]',
    file: 'bench/runner-vs-act.ts',
  },
  {
    name: 'shard-load',
    yields:
      'milliseconds to the first answer of a tenant of 1 M tuples, its CPU and p99 of others, over COPY [DIRECTORY…]',
    file: 'bench/shard-load.ts',
  },
  {
    name: 'small-shards',
    yields:
      'bytes of the process a small shard, and shards a second [TENANTS] [LIMIT_MIB] [TUPLES]',
    file: 'bench/small-shards.ts',
    nodeFlags: ['--expose-gc'],
  },
  {
    name: 'snapshot-load',
    yields: 'tuples a second out of Postgres, cut into rows',
    file: 'bench/snapshot-load.ts',
  },
  {
    name: 'tuples-in-bulk',
    yields:
      'tuples a second out and in, over plain COPY; ROWS and RUNS set others than 500,000 and 3',
    file: 'bench/tuples-in-bulk.ts',
  },
  {
    name: 'thread-hops',
    yields: 'CPU microseconds of a round trip to a worker thread, by what carries it',
    file: 'bench/thread-hops.ts',
  },
  {
    name: 'worker-host',
    yields: 'items a second that a worker answers, without its thread',
    file: 'bench/worker-host.ts',
  },
  {
    name: 'worker-pool',
    yields: 'requests a second through the pool and one thread',
    file: 'bench/worker-pool.ts',
  },
  {
    name: 'write-cost',
    yields: 'tuples a CPU-second of service and PostgreSQL, and bytes a tuple [DIRECTORY…]',
    file: 'bench/write-cost.ts',
  },
  {
    name: 'write-modes',
    yields: 'writes a second whose updates ask what is stored, over plain ones [SECONDS] [PAIRS]',
    file: 'bench/write-modes.ts',
  },
  {
    name: 'write-throughput',
    yields: 'acknowledged writes a second over commits of one connection [SECONDS]',
    file: 'bench/write-throughput.ts',
  },
  {
    name: 'read-index',
    yields: 'milliseconds of one look at the heads of 1 to 1,000 shards',
    file: 'bench/read-index.ts',
  },
  {
    name: 'http-compare',
    yields: 'requests a second of listener and adapter next to uWebSockets.js alone',
    file: 'bench/http-compare.ts',
  },
  {
    name: 'http-check-vs-echo',
    yields: 'rate of Check over HTTP JSON over that of a raw echo, also per CPU-second',
    file: 'bench/http-check-vs-echo.ts',
  },
  {
    name: 'http1-parsers',
    yields: 'CPU of a Check and of a batch by node:http over that by uWebSockets.js',
    file: 'bench/http1-parsers.ts',
  },
  {
    name: 'grpc-frames',
    yields: 'what HTTP/2 by hand could save beside node:http2 at most',
    file: 'bench/grpc-frames.ts',
  },
  {
    name: 'grpc-check-vs-echo',
    yields: 'rate of Check over gRPC over that of raw node:http2, also per CPU-second and p99',
    file: 'bench/grpc-check-vs-echo.ts',
  },
  {
    name: 'check-stages',
    yields: 'ns of a Check by stage over HTTP/1.1 and gRPC, and what measuring them costs',
    file: 'bench/check-stages.ts',
  },
  {
    name: 'two-checkouts',
    yields:
      'Check, batch, gRPC and writes of this checkout over those of another, by CPU, in turns',
    file: 'bench/two-checkouts.ts',
  },
  {
    name: 'hot-tenant',
    yields: 'what two workers can answer of one tenant over what its owner can, by CPU',
    file: 'bench/hot-tenant.ts',
  },
  {
    name: 'local-replica-checks',
    yields:
      "what replicas on the gateway's thread make of Checks over HTTP/1.1, at saturation and half rate",
    file: 'bench/local-replica-checks.ts',
  },
  {
    name: 'local-replica-pool',
    yields:
      "CPU of a Check on the gateway's thread and by a worker, without HTTP, and how long it takes there",
    file: 'bench/local-replica-pool.ts',
  },
  {
    name: 'start-to-ready',
    yields: 'time to ready on an empty data directory over that of making a cluster [ROUNDS]',
    file: 'bench/start-to-ready.ts',
  },
];

/** The JSON lines that a program printed, and the code with which it ended. */
export async function runProgram(
  program: Program,
  options: { readonly scale: number; readonly arguments: readonly string[] },
): Promise<{ readonly results: readonly unknown[]; readonly code: number | null }> {
  const args = [...(program.nodeFlags ?? []), program.file, ...options.arguments];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_SCALE: String(options.scale) },
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', reject);
  });
  const results: unknown[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{')) results.push(JSON.parse(line));
    else process.stderr.write(`${line}\n`);
  }
  return { results, code: await ended };
}
