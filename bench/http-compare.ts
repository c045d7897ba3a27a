import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Question: what do our listener and Connect's general path cost over uWebSockets.js alone, for one
 * small JSON request? Needs `wrk`. Rounds alternate between the three, so that all see the same
 * neighbours; medians are compared. Requests per CPU-second of the server say more than the rate,
 * since the generator shares the machine. Prints JSON.
 */
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 32);
const PORT = 39_601;
const MODES = ['raw', 'listener', 'adapter'] as const;
const TICKS_PER_SECOND = 100;
const run = promisify(execFile);

type Mode = (typeof MODES)[number];
type Round = { readonly rps: number; readonly perCpuSecond: number };

const SCRIPT = `wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer 0123456789abcdef0123456789abcdef"
wrk.body = '{"namespace":"doc","object_id":"1","relation":"viewer","subject_user_id":"alice"}'`;

const script = join(tmpdir(), `http-compare-${process.pid}.lua`);
writeFileSync(script, SCRIPT);
const servers = new Map<Mode, ChildProcess>();
try {
  for (const [index, mode] of MODES.entries()) {
    const args = ['bench/http-echo-server.ts', mode, String(PORT + index)];
    const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    servers.set(mode, server);
    if (server.stdout !== null) await once(server.stdout, 'data');
  }
  const rounds: Record<Mode, Round[]> = { raw: [], listener: [], adapter: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, mode] of MODES.entries()) {
      rounds[mode].push(await measure(PORT + index, servers.get(mode)?.pid ?? 0));
    }
  }
  const medians = MODES.map((mode) => [mode, median(rounds[mode])] as const);
  process.stdout.write(
    `${JSON.stringify({ bench: 'http-compare', ...Object.fromEntries(medians) })}\n`,
  );
} finally {
  rmSync(script, { force: true });
  for (const server of servers.values()) server.kill();
}

async function measure(port: number, pid: number): Promise<Round> {
  const before = cpuTicks(pid);
  const url = `http://127.0.0.1:${port}/workspace.v1.AuthzService/Check`;
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', script, url];
  const { stdout } = await run('wrk', args);
  const cpuSeconds = (cpuTicks(pid) - before) / TICKS_PER_SECOND;
  const count = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  const rps = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  return { rps: Math.round(rps), perCpuSecond: Math.round(count / cpuSeconds) };
}

/** User and system time of a process so far, in ticks (Linux). */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

function median(rounds: readonly Round[]): Round {
  const sorted = rounds.toSorted((a, b) => a.perCpuSecond - b.perCpuSecond);
  return sorted[Math.floor(sorted.length / 2)] ?? { rps: 0, perCpuSecond: 0 };
}
