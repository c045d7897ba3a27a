import { spawn, spawnSync } from 'node:child_process';
import { expect } from 'vitest';
import { type Balancer, freePorts } from './balancer.ts';

/** Whether the program is here (Debian package haproxy). */
export const HAS_HAPROXY = spawnSync('haproxy', ['-v']).error === undefined;

/** deploy/haproxy.cfg as it is, with the addresses of the cluster. */
export async function startHaproxy(
  ports: readonly number[],
): Promise<Pick<Balancer, 'port' | 'stop'>> {
  const [port = 0, metricsPort = 0] = await freePorts(2);
  const addresses = ports.map((one, n) => [`GATEHOUSE_${n + 1}`, `127.0.0.1:${one}`]);
  const child = spawn('haproxy', ['-db', '-f', 'deploy/haproxy.cfg'], {
    stdio: 'ignore',
    env: {
      ...Object.fromEntries(addresses),
      PATH: process.env['PATH'],
      GATEHOUSE_BIND: `127.0.0.1:${port}`,
      GATEHOUSE_BALANCER_METRICS_BIND: `127.0.0.1:${metricsPort}`,
    },
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const isUp = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(isUp, { timeout: 10_000 }).toBe(true);
  return {
    port,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
