import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { failureOf } from '../../bench/harness/client.ts';
import type { Service } from '../../bench/harness/service.ts';
import {
  ALLOWED,
  BATCH_CHECK_PATH,
  CHECK_PATH,
  batchBodies,
  checkBodies,
  fill,
} from '../../bench/harness/target.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { World } from '../../test/support/dataset/world.ts';
import { type Issue, type RateResult, runAtRate } from '../harness/arrivals.ts';
import { prepare } from '../harness/prepare.ts';
import { Pressure, peakMib, residentMib } from '../harness/pressure.ts';
import { RawPool, requestBytes } from '../harness/raw-http.ts';
import type { Scenario } from '../harness/scenario.ts';

/** Batches of the flood that are open at once, in turn; what it costs to be the first is in the first. */
const FLOODS = [16, 64];
const BATCH_ITEMS = 10_000;

const portOf = (service: Service): number => Number(new URL(service.baseUrl).port);

const ignoreSent = (): void => undefined;

/** A constant rate with the p99 of each second of it. */
async function perSecondAt(
  perSecond: number,
  seconds: number,
  issue: Issue,
): Promise<{ readonly whole: RateResult; readonly p99MsBySecond: readonly number[] }> {
  const histograms: RecordableHistogram[] = [];
  const startMs = performance.now();
  const whole = await runAtRate({
    perSecond,
    seconds,
    issue: (index, done, dueMs) => {
      const second = Math.max(0, Math.floor((dueMs - startMs) / 1000));
      issue(index, (failure) => {
        const histogram = (histograms[second] ??= createHistogram({ figures: 3 }));
        histogram.record(Math.max(1, Math.round((performance.now() - dueMs) * 1e6)));
        done(failure);
      });
    },
  });
  const p99MsBySecond = histograms.map((h) => Math.round(h.percentile(99) / 1e4) / 100);
  return { whole, p99MsBySecond };
}

export const neighbours: Scenario = {
  name: 'neighbours',
  purpose: 'one tenant asks gently while another floods with batches of 10,000',
  question: 'How much of a tenant’s latency is decided by its neighbour on the same worker?',
  async run(options, start) {
    const env = { GATEWAY_WORKERS: '1' };
    const shared = await prepare(options, start, env);
    // Pressed on instead in the control, so that the machine is as busy and the service is not.
    const other = await prepare(options, start, env);
    const quiet = { ...shared.scope, tenant_id: 'quiet' };
    const small = new World(0.1, options.seed);
    await fill(shared.client, small.tuples, quiet);
    const questions = mixedQuestions(small, 10_000, 'uniform');
    const { token } = shared.service;
    const requests = checkBodies(questions, quiet).map((body) =>
      requestBytes(CHECK_PATH, body, token),
    );
    const pool = new RawPool(portOf(shared.service), 512);
    const issue: Issue = (index, done) => {
      const i = index % requests.length;
      pool.post(requests[i] as Buffer, ignoreSent, (reply) =>
        done(failureOf(reply, undefined, (body) => body.equals(ALLOWED) === questions[i]?.allow)),
      );
    };
    const perSecond = options.rate ?? 500;
    const { seconds } = options;
    await runAtRate({ perSecond, seconds: 5, issue });
    const [noise] = batchBodies(
      mixedQuestions(shared.world, BATCH_ITEMS, 'uniform'),
      BATCH_ITEMS,
      shared.scope,
    );
    const bodies = [(noise as Buffer).toString()];
    const pressure = new Pressure();
    const beside = async (service: Service, connections: number) => {
      const pressed = pressure.press({
        port: portOf(service),
        token,
        path: BATCH_CHECK_PATH,
        bodies,
        seconds: seconds + 30,
        connections,
      });
      const { result, mib } = await peakMib(service.pid, perSecondAt(perSecond, seconds, issue));
      pressure.stop();
      const { goodPerSecond, refused, p50Ms } = await pressed;
      return { ...result, peakMib: mib, flood: { goodPerSecond, refused, p50Ms } };
    };
    const runs: unknown[] = [];
    for (const connections of FLOODS) {
      const alone = await perSecondAt(perSecond, seconds, issue);
      const mibBefore = await residentMib(shared.service.pid);
      const flooded = await beside(shared.service, connections);
      const control = await beside(other.service, connections);
      const ratioOf = (p99Ms: number): number =>
        Math.round((p99Ms / alone.whole.p99Ms) * 100) / 100;
      runs.push({
        connections,
        alone,
        flooded,
        control,
        mibBefore,
        ratios: flooded.p99MsBySecond.map(ratioOf),
        controlRatios: control.p99MsBySecond.map(ratioOf),
      });
    }
    pressure.close();
    pool.close();
    for (const { client, open } of [shared, other]) {
      await client.close();
      await open.close();
    }
    return { perSecond, runs };
  },
};
