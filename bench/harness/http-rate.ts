// Loads an HTTP server; yields nothing by itself.
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Requests to send in turn, and for how long. */
export type HttpLoad = {
  readonly port: number;
  /** Of the server, whose CPU time is read. */
  readonly pid: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodies: readonly string[];
  readonly connections: number;
  readonly seconds: number;
};

/** Requests a second, and requests per CPU-second of the server (NaN where /proc is missing). */
export type HttpRate = { readonly perSecond: number; readonly perCpuSecond: number };

const TICKS_PER_SECOND = 100;
const hasWrk = process.env['BENCH_GENERATOR'] !== 'own' && spawnSync('wrk', ['-v']).status !== null;

/** `wrk` where it is installed, else sockets of ours; BENCH_GENERATOR=own takes the latter anyway. */
export const HTTP_GENERATOR = hasWrk ? 'wrk' : 'own';

/**
 * The rate of a closed loop, one request at a time on each connection. Errors: throws when an answer
 * is not 200. The generator shares the machine, so that the figure per CPU-second says more.
 */
export async function measureHttp(load: HttpLoad): Promise<HttpRate> {
  const before = cpuSeconds(load.pid);
  const startMs = performance.now();
  const count = hasWrk ? await countWithWrk(load) : await countWithSockets(load);
  const lastedS = (performance.now() - startMs) / 1000;
  return {
    perSecond: Math.round(count / lastedS),
    perCpuSecond: Math.round(count / (cpuSeconds(load.pid) - before)),
  };
}

/** The round in the middle, by requests per CPU-second where that is known. */
export function medianRate(rates: readonly HttpRate[]): HttpRate {
  const key = (rate: HttpRate): number => rate.perCpuSecond || rate.perSecond;
  const middle = rates.toSorted((a, b) => key(a) - key(b))[rates.length >> 1];
  if (middle === undefined) throw new Error('no rounds');
  return middle;
}

/** Seconds of user and system time of all threads of a process so far; NaN where /proc is missing. */
export function cpuSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Number.NaN;
    throw error;
  }
}

async function countWithWrk(load: HttpLoad): Promise<number> {
  const script = join(tmpdir(), `gatehouse-bench-${process.pid}.lua`);
  const headers = Object.entries(load.headers).map(([k, v]) => `wrk.headers["${k}"] = "${v}"`);
  const bodies = load.bodies.map((body) => `[[${body}]]`).join(',');
  writeFileSync(
    script,
    `wrk.method = "POST"\n${headers.join('\n')}\nlocal bodies, ready, i = {${bodies}}, {}, 0
init = function() for k, body in ipairs(bodies) do ready[k] = wrk.format("POST", nil, nil, body) end end
request = function() i = i % #ready + 1 return ready[i] end\n`,
  );
  try {
    const url = `http://127.0.0.1:${load.port}${load.path}`;
    const args = [
      '-t1',
      `-c${load.connections}`,
      `-d${load.seconds}s`,
      '--timeout',
      '30s',
      '-s',
      script,
      url,
    ];
    const { stdout } = await promisify(execFile)('wrk', args);
    if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk met errors:\n${stdout}`);
    return Number(/(\d+) requests in/.exec(stdout)?.[1]);
  } finally {
    rmSync(script, { force: true });
  }
}

/** Sockets without an HTTP client between, so that the generator takes little of the machine. */
async function countWithSockets(load: HttpLoad): Promise<number> {
  const fields = Object.entries(load.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const requests = load.bodies.map((body) =>
    Buffer.from(
      `POST ${load.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${fields.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ),
  );
  const endMs = performance.now() + load.seconds * 1000;
  let next = 0;
  let count = 0;
  const ask = (socket: Socket): void => {
    if (performance.now() >= endMs) socket.end();
    else socket.write(requests[next++ % requests.length] as Buffer);
  };
  const connection = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true });
      let text = '';
      socket.setEncoding('latin1');
      socket.once('connect', () => ask(socket));
      socket.on('data', (chunk: string) => {
        text += chunk;
        if (!isWhole(text)) return;
        if (text.startsWith('HTTP/1.1 200')) {
          text = '';
          count++;
          ask(socket);
        } else socket.destroy(new Error(text));
      });
      socket.once('error', reject);
      socket.once('close', () => resolve());
    });
  await Promise.all(Array.from({ length: load.connections }, connection));
  return count;
}

/** Whether all of an answer with a Content-Length has come. */
function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head));
  if (length === null) throw new Error(`an answer without a length:\n${text}`);
  return text.length >= head + 4 + Number(length[1]);
}
