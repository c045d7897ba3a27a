import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { CHECK_PATH, checkBodies } from '../../bench/harness/target.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import {
  ConnectionClients,
  type ConnectionCommand,
  type ConnectionReport,
} from '../harness/connections.ts';
import { prepare } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';

type Shape = Pick<ConnectionCommand, 'connections' | 'requestsEach' | 'isBurst'> & {
  readonly name: string;
};

/** Shapes of load: how many connections at once, and how many requests each lives for. */
const SHAPES: readonly Shape[] = [
  { name: 'every request a new connection', connections: 32, requestsEach: 1 },
  { name: 'every hundredth', connections: 200, requestsEach: 100 },
  { name: '1,000 that stay', connections: 1_000, requestsEach: Number.MAX_SAFE_INTEGER },
  { name: '10,000 that stay', connections: 10_000, requestsEach: Number.MAX_SAFE_INTEGER },
  { name: '10,000 at once, one request each', connections: 10_000, requestsEach: 1, isBurst: true },
];
/** A burst has longer: the kernel tries again after 1, 2 and 4 s where a queue was full. */
const BURST_SECONDS = 30;

export const connectionChurn: Scenario = {
  name: 'connection-churn',
  purpose: 'connections that come and go under load, beside a raw echo',
  question: 'How long does a new connection wait for its first answer while others are served?',
  async run(options, start) {
    const { service, client, open, world, scope } = await prepare(options, start, {
      GATEWAY_WORKERS: '1',
    });
    const bodies = checkBodies(mixedQuestions(world, 20_000, 'uniform'), scope).map(String);
    const echo = spawn(process.execPath, ['bench/http-check-echo-server.ts'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], ECHO_TOKEN: service.token, ECHO_PORT: '0' },
    });
    const clients = new ConnectionClients();
    try {
      const [said] = (await once(echo.stdout, 'data')) as [Buffer];
      const ports = {
        own: Number(new URL(service.baseUrl).port),
        echo: Number(String(said).trim()),
      };
      const common = { token: service.token, path: CHECK_PATH, bodies };
      const press = (port: number, shape: Shape, seconds: number) =>
        refusedDuring(() =>
          clients.press({
            ...common,
            ...shape,
            port,
            seconds: shape.isBurst === true ? BURST_SECONDS : seconds,
          }),
        );
      const [warmUp] = SHAPES;
      if (warmUp !== undefined) await press(ports.own, { ...warmUp, requestsEach: 100 }, 2);
      const results: Record<string, Shown> = {};
      for (const shape of SHAPES) {
        const own = await press(ports.own, shape, options.seconds);
        const raw = await press(ports.echo, shape, options.seconds);
        results[shape.name] = { firstToLaterP99: firstToLater(own), own, echo: raw };
      }
      return { results };
    } finally {
      clients.close();
      echo.kill();
      await client.close();
      await open.close();
    }
  },
};

type Measured = ConnectionReport & {
  /** Connections that the kernel did not let in, or forgot, since a queue was full: of the whole machine. */
  readonly kernelRefused: number;
};

type Shown = {
  /** p99 of first answers over that of later ones; NaN where there are none. */
  readonly firstToLaterP99: number;
  readonly own: Measured;
  readonly echo: Measured;
};

async function refusedDuring(press: () => Promise<ConnectionReport>): Promise<Measured> {
  const before = await kernelRefused();
  const report = await press();
  return { ...report, kernelRefused: (await kernelRefused()) - before };
}

/** NaN where the system does not say. */
async function kernelRefused(): Promise<number> {
  const lines = await readFile('/proc/net/netstat', 'utf8').catch(() => '');
  const [names = '', values = ''] = lines.split('\n').filter((line) => line.startsWith('TcpExt:'));
  return Number(values.split(' ')[names.split(' ').indexOf('ListenDrops')]);
}

function firstToLater({ first, later }: ConnectionReport): number {
  return later.count === 0 ? Number.NaN : Math.round((first.p99Ms / later.p99Ms) * 100) / 100;
}
