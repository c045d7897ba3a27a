import { setTimeout as delay } from 'node:timers/promises';
import { CHECK_PATH } from '../../bench/harness/target.ts';
import { startBalancer } from '../../test/rollout/balancer.ts';
import { type Outcome, quantileMs, startLoad, tenantName } from '../../test/rollout/steady-load.ts';
import { checkBody, fillTenants, type Instances, prepareInstances } from '../harness/instances.ts';
import type { Scenario } from '../harness/scenario.ts';

const INSTANCES = 3;
/** Until the balancer has an instance back. */
const BACK_MS = 1_000;

const figuresOf = (outcomes: readonly Outcome[]) => ({
  requests: outcomes.length,
  failed: outcomes.filter(({ status }) => status !== 200).length,
  p50Ms: round(quantileMs(outcomes, 0.5)),
  p99Ms: round(quantileMs(outcomes, 0.99)),
  maxMs: round(quantileMs(outcomes, 1)),
});
const round = (ms: number): number => Math.round(ms * 10) / 10;

/** 100 tenants of 1,000 tuples on three instances; each caller asks again 5 ms after its answer. */
async function withLoad(
  callers: number,
  work: (
    instances: Instances,
    load: ReturnType<typeof startLoad>,
  ) => Promise<Record<string, unknown>>,
  tenants = 100,
  tuplesEach = 1_000,
): Promise<Record<string, unknown>> {
  const instances = await prepareInstances(INSTANCES);
  try {
    const names = Array.from({ length: tenants }, (_, n) => tenantName(n));
    await fillTenants(instances, names, tuplesEach);
    for (let index = 0; index < INSTANCES; index++) await instances.start(index);
    const balancer = await startBalancer(instances.ports);
    const load = startLoad({
      port: balancer.port,
      callers,
      pauseMs: 5,
      tenants,
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${instances.services[0]?.token}`,
      },
      call: (tenant, n) => ({
        path: CHECK_PATH,
        body: checkBody(tenantName(tenant), 1 + (n % tuplesEach)),
      }),
    });
    try {
      return await work(instances, load);
    } finally {
      await load.stop();
      await balancer.stop();
    }
  } finally {
    await instances.stop();
  }
}

export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  purpose: 'three instances behind a balancer are restarted one by one under load',
  question: 'How many requests fail, and how late are the others?',
  run: (options) =>
    withLoad(options.connections, async (instances, load) => {
      await delay(options.seconds * 1_000);
      const before = load.outcomes.slice();
      for (let index = 0; index < INSTANCES; index++) {
        await instances.services[index]?.stop();
        await instances.start(index);
        await delay(BACK_MS);
      }
      const during = load.outcomes.slice(before.length);
      return {
        tenants: 100,
        tuples: 100_000,
        before: figuresOf(before),
        during: figuresOf(during),
      };
    }),
};

/** `tenants` of `tuplesEach`, all loaded where they are served; then one instance is killed. */
function killScenario(name: string, tenants: number, tuplesEach: number): Scenario {
  return {
    name,
    purpose: `one of three instances is killed, ${tenants} tenants of ${tuplesEach} tuples`,
    question: 'What fails, and how long until every tenant of the dead one is answered elsewhere?',
    run: (options) =>
      withLoad(
        options.connections,
        async (instances, load) => {
          await delay(options.seconds * 1_000);
          const before = load.outcomes.slice();
          process.kill(instances.services[1]?.pid ?? 0, 'SIGKILL');
          instances.services[1] = undefined;
          const killedMs = Math.max(...before.map(({ startMs, tookMs }) => startMs + tookMs));
          const answered = new Set<number>();
          for (let at = before.length; answered.size < tenants; await delay(50)) {
            for (; at < load.outcomes.length; at++) {
              const { tenant, status } = load.outcomes[at] as Outcome; // below length
              if (status === 200) answered.add(tenant);
            }
          }
          const after = load.outcomes.slice(before.length);
          return {
            before: figuresOf(before),
            after: figuresOf(after),
            slowestAfterMs: round(Math.max(...after.map(({ tookMs }) => tookMs))),
            // Requests go round; with a thousand tenants that alone takes its time.
            allAnsweredMs: round(
              Math.max(...after.map(({ startMs, tookMs }) => startMs + tookMs)) - killedMs,
            ),
            lastFailedMs: round(
              Math.max(
                0,
                ...after
                  .filter(({ status }) => status !== 200)
                  .map(({ startMs, tookMs }) => startMs + tookMs - killedMs),
              ),
            ),
          };
        },
        tenants,
        tuplesEach,
      ),
  };
}

export const killOne = killScenario('kill-one', 100, 1_000);
export const killOneOfMany = killScenario('kill-one-1000-tenants', 1_000, 100);
export const killOneLarge = killScenario('kill-one-1m-tuples', 3, 1_000_000);
