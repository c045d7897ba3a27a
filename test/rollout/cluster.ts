import type { PostgresTarget } from '../../src/store/postgres/pool.ts';
import { urlOf } from '../support/postgres-admin.ts';
import { type Service, startService } from '../support/service.ts';
import { freePorts } from './balancer.ts';

/** Several instances on one database, each a process on a port of its own that it keeps. */
export interface Cluster {
  readonly ports: readonly number[];
  readonly token: string;
  readonly instances: readonly Service[];
  /** SIGTERM, the end, and another one in its place; resolves when that is ready. Its exit code. */
  restart(index: number): Promise<number | null>;
  /** SIGKILL; its place stays empty. */
  kill(index: number): Promise<void>;
  /** SIGTERM to all; their exit codes (null: killed). */
  stop(): Promise<readonly (number | null)[]>;
}

/** Drains for longer than the balancers of these tests take to notice. */
const DRAIN_MS = '1000';

/** Starts `count` instances on the database; resolves when all are ready. */
export async function startCluster(
  target: PostgresTarget,
  count: number,
  env: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const ports = await freePorts(count);
  const start = (index: number): Promise<Service> =>
    startService({
      env: {
        DATABASE_URL: urlOf(target),
        GATEWAY_CONNECT_PORT: String(ports[index]),
        GATEWAY_WORKERS: '1',
        GATEWAY_DRAIN_MS: DRAIN_MS,
        GATEWAY_PG_POOL_SIZE: '5',
        ...env,
      },
    });
  const instances = await Promise.all(ports.map((_, index) => start(index)));
  const at = (index: number): Service => {
    const instance = instances[index];
    if (instance === undefined) throw new Error(`no instance ${index}`);
    return instance;
  };
  return {
    ports,
    instances,
    token: at(0).token,
    restart: async (index) => {
      const code = await at(index).stop();
      instances[index] = await start(index);
      return code;
    },
    kill: async (index) => {
      await at(index).kill('SIGKILL');
    },
    stop: () => Promise.all(instances.map((instance) => instance.stop())),
  };
}
