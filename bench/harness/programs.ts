import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A benchmark: a program that prints one JSON line for each row of its table. */
export type Program = {
  readonly name: string;
  /** What it answers, with its arguments. */
  readonly yields: string;
  readonly file: string;
  readonly nodeFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
};

/** What a program printed, and how it ended. */
export type ProgramResult = {
  readonly name: string;
  readonly yields: string;
  /** Exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly results: readonly Readonly<Record<string, unknown>>[];
};

/** Every benchmark, by its name on the command line. */
export const PROGRAMS: readonly Program[] = [
  {
    name: 'check-http',
    yields: 'Checks over HTTP JSON beside a raw echo [CHECKOUT…]',
    file: 'bench/check-beside-echo.ts',
    env: { BENCH_PROTOCOL: 'http1' },
  },
  {
    name: 'check-grpc',
    yields: 'Checks over gRPC beside a raw echo [CHECKOUT…]',
    file: 'bench/check-beside-echo.ts',
    env: { BENCH_PROTOCOL: 'grpc' },
  },
  {
    name: 'batch-check',
    yields: 'items of BatchCheck of 100 over HTTP JSON and gRPC [CHECKOUT…]',
    file: 'bench/batch-check.ts',
  },
  {
    name: 'lists',
    yields: 'objects of ListObjects over HTTP JSON [CHECKOUT…]',
    file: 'bench/lists.ts',
  },
  {
    name: 'writes',
    yields: 'acknowledged writes beside PostgreSQL alone [CHECKOUT…]',
    file: 'bench/writes.ts',
  },
  {
    name: 'index-memory',
    yields: 'bytes of the index a tuple [DATA_DIR]',
    file: 'bench/index-memory.ts',
    nodeFlags: ['--expose-gc'],
  },
  {
    name: 'snapshot-load',
    yields: 'tuples a second out of PostgreSQL [TUPLES]',
    file: 'bench/snapshot-load.ts',
  },
  {
    name: 'small-tenants',
    yields: 'bytes and CPU of a small tenant [TENANTS] [LIMIT_MIB] [TUPLES]',
    file: 'bench/small-tenants.ts',
    nodeFlags: ['--expose-gc'],
  },
  {
    name: 'engine-peers',
    yields: 'Checks of the engine alone, on the data of peers [DATA_DIR]',
    file: 'bench/engine-peers.ts',
  },
  {
    name: 'model-versions',
    yields: 'Checks of the engine alone by named versions of a model [DATA_DIR]',
    file: 'bench/model-versions.ts',
  },
  {
    name: 'runner-vs-act',
    yields: 'milliseconds of a workflow run beside act [STRATEGY]',
    file: 'bench/runner-vs-act.ts',
  },
  {
    name: 'read-index',
    yields: 'milliseconds of one look at the heads of 1 to 1,000 shards',
    file: 'bench/read-index.ts',
  },
];

/** Runs one program; what is no JSON line of its output goes to the standard error. */
export async function runProgram(
  { name, yields, file, nodeFlags = [], env = {} }: Program,
  options: {
    readonly env: Readonly<Record<string, string>>;
    readonly arguments: readonly string[];
  },
): Promise<ProgramResult> {
  const child = spawn(process.execPath, [...nodeFlags, file, ...options.arguments], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...options.env, ...env },
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve);
    child.once('error', reject);
  });
  const results: Record<string, unknown>[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    process.stderr.write(`${line}\n`);
    if (line.startsWith('{')) results.push(JSON.parse(line) as Record<string, unknown>);
  }
  return { name, yields, code: await ended, results };
}
