import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { atEnd } from '../../bench/harness/cleanup.ts';
import { type Service, startService } from '../../bench/harness/service.ts';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';
import { migrate } from '../../src/store/migrations/migrate.ts';
import { freePorts, startBalancer } from '../../test/rollout/balancer.ts';
import { type Scenario, askOf, stageFigures } from './scenario.ts';

const INSTANCES = 3;
/** Between two restarts, which includes what a restart takes. */
const EACH_SECONDS = 8;
/** Until the generator has begun. */
const BEGIN_SECONDS = 2;

export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  question:
    'How many requests fail, and how late are the others, while three instances behind a balancer are replaced one by one?',
  run: async (options) => {
    const dataDirectory = await mkdtemp(join(tmpdir(), 'gatehouse-load-pg-'));
    atEnd(() => rm(dataDirectory, { recursive: true, force: true }));
    const server = await startEmbeddedPostgres({ dataDirectory, maxConnections: 200 });
    atEnd(() => server.stop());
    const { user, password, database, host, port } = server.target;
    const credentials = `${user}:${encodeURIComponent(password)}`;
    const url = `postgres://${credentials}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`;
    const services: Service[] = [];
    await migrate(server.target);
    const ports = await freePorts(INSTANCES);
    const start = (index: number): Promise<Service> =>
      startService({
        DATABASE_URL: url,
        GATEWAY_CONNECT_PORT: String(ports[index]),
        GATEWAY_WORKERS: '1',
      });
    for (let index = 0; index < INSTANCES; index++) services[index] = await start(index);
    const balancer = await startBalancer(ports);
    atEnd(() => balancer.stop());
    const { token = '', adminSecret = '' } = services[0] ?? {};
    const baseUrl = `http://127.0.0.1:${balancer.port}`;
    const ask = askOf({ baseUrl, token, adminSecret, metricsUrls: [] }, options);
    const { rate = 500, seconds, connections: callers } = options;
    const operations = [{ kind: 'check' }];
    await ask('warm up', { operations, stages: [{ seconds: 3, callers }] });
    const asking = ask('restarts', {
      operations,
      stages: [
        { name: 'before', seconds: seconds + BEGIN_SECONDS, rate },
        { name: 'restarts', seconds: INSTANCES * EACH_SECONDS, rate },
      ],
    });
    // An interrupt is told where it is waited for.
    asking.catch(() => undefined);
    await delay((seconds + BEGIN_SECONDS) * 1_000);
    for (const [index, service] of services.entries()) {
      const pause = Promise.race([delay(EACH_SECONDS * 1_000), asking]);
      await service.stop();
      services[index] = await start(index);
      await pause;
    }
    const run = await asking;
    const [before, restarts] = [stageFigures(run, 'before'), stageFigures(run, 'restarts')];
    return { figures: { before, restarts }, runs: [{ label: '', run }] };
  },
};
