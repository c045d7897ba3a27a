/**
 * Yields requests per CPU-second of the server, three times: uWebSockets.js alone, our listener, and
 * Connect's general path, for one small JSON request. Rounds alternate between the three, so that
 * all see the same neighbours; medians are compared.
 * Run: npm run bench -- http-compare, with BENCH_SECONDS, BENCH_ROUNDS, BENCH_CONNECTIONS,
 * BENCH_GENERATOR=own. Prints one JSON line.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { HTTP_GENERATOR, type HttpRate, measureHttp, medianRate } from './harness/http-rate.ts';

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 4);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 3);
const CONNECTIONS = Number(process.env['BENCH_CONNECTIONS'] ?? 32);
const PORT = 39_601;
const MODES = ['raw', 'listener', 'adapter'] as const;

type Mode = (typeof MODES)[number];

const load = {
  path: '/workspace.v1.AuthzService/Check',
  headers: {
    'content-type': 'application/json',
    authorization: 'Bearer 0123456789abcdef0123456789abcdef',
  },
  bodies: ['{"namespace":"doc","object_id":"1","relation":"viewer","subject_user_id":"alice"}'],
  connections: CONNECTIONS,
  seconds: SECONDS,
};

const servers = new Map<Mode, ChildProcess>();
try {
  for (const [index, mode] of MODES.entries()) {
    const args = ['bench/http-echo-server.ts', mode, String(PORT + index)];
    const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    servers.set(mode, server);
    if (server.stdout !== null) await once(server.stdout, 'data');
  }
  const rounds: Record<Mode, HttpRate[]> = { raw: [], listener: [], adapter: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, mode] of MODES.entries()) {
      const pid = servers.get(mode)?.pid ?? 0;
      rounds[mode].push(await measureHttp({ ...load, port: PORT + index, pid }));
    }
  }
  const medians = MODES.map((mode) => [mode, medianRate(rounds[mode])] as const);
  process.stdout.write(
    `${JSON.stringify({ bench: 'http-compare', generator: HTTP_GENERATOR, ...Object.fromEntries(medians) })}\n`,
  );
} finally {
  for (const server of servers.values()) server.kill();
}
