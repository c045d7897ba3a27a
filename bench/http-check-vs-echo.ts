import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { call, startService } from '../test/support/service.ts';

/**
 * Question: how much of a raw uWebSockets.js echo's request rate does a real Check reach, over HTTP
 * JSON with a bearer token, both in the same run on the same machine? Needs `wrk`. Prints JSON.
 * Rounds alternate, so that both see the same neighbours; the medians are compared.
 */
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 5);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 32);
const ECHO_PORT = 39_517;
const run = promisify(execFile);

type Round = { readonly rps: number; readonly cpuSeconds: number };

const service = await startService({ env: { GATEWAY_WORKERS: '1' } });
const echo = spawn(process.execPath, ['bench/http-check-echo-server.ts'], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { PATH: process.env['PATH'], ECHO_TOKEN: service.token, ECHO_PORT: String(ECHO_PORT) },
});
const script = join(tmpdir(), `gatehouse-bench-${process.pid}.lua`);
try {
  await once(echo.stdout, 'data');
  const updates = Array.from({ length: 500 }, (_, i) => ({
    op: 'OP_INSERT',
    tuple: {
      namespace: 'resource',
      object_id: `doc-${i}`,
      relation: 'viewer',
      subject: { user_id: i % 2 === 0 ? 'alice' : `user-${i}` },
    },
  }));
  await call(service, 'AuthzService/WriteRelationTuples', { updates });
  writeFileSync(script, wrkScript(service.token));
  const own: Round[] = [];
  const raw: Round[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    own.push(await measure(service.baseUrl, service.pid));
    raw.push(await measure(`http://127.0.0.1:${ECHO_PORT}`, echo.pid ?? 0));
  }
  const [check, yardstick] = [median(own), median(raw)];
  const ratio = (a: number, b: number): number => Math.round((a / b) * 1000) / 1000;
  const result = {
    bench: 'http-check-vs-echo',
    connections: CONNECTIONS,
    check_rps: Math.round(check.rps),
    echo_rps: Math.round(yardstick.rps),
    ratio: ratio(check.rps, yardstick.rps),
    ratio_per_cpu_second: ratio(check.rps / check.cpuSeconds, yardstick.rps / yardstick.cpuSeconds),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
} finally {
  rmSync(script, { force: true });
  echo.kill();
  await service.stop();
}

async function measure(baseUrl: string, pid: number): Promise<Round> {
  const url = `${baseUrl}/workspace.v1.AuthzService/Check`;
  const before = cpuSeconds(pid);
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', script, url];
  const { stdout } = await run('wrk', args);
  if (stdout.includes('Non-2xx')) throw new Error(`wrk met errors:\n${stdout}`);
  const rps = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  return { rps, cpuSeconds: (cpuSeconds(pid) - before) / SECONDS };
}

/** User and system time of all threads of a process, in seconds. */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function median(rounds: readonly Round[]): Round {
  const sorted = rounds.toSorted((a, b) => a.rps - b.rps);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('no rounds');
  return middle;
}

function wrkScript(token: string): string {
  return `
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer ${token}"
local i = 0
request = function()
  i = (i + 7) % 500
  local body = '{"namespace":"resource","object_id":"doc-' .. i .. '","relation":"viewer","subject_user_id":"alice"}'
  return wrk.format("POST", nil, nil, body)
end
`;
}
