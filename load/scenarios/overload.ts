import { cpuSeconds } from '../../bench/harness/service.ts';
import {
  BATCH_CHECK_PATH,
  CHECK_PATH,
  batchBodies,
  checkBodies,
} from '../../bench/harness/target.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { prepare } from '../harness/prepare.ts';
import { Pressure, type PressureReport, peakMib, residentMib } from '../harness/pressure.ts';
import type { Scenario } from '../harness/scenario.ts';

const MULTIPLES = [1, 2, 10];
/** As many callers as a saturated service needs to be kept busy. */
const SATURATING_CONNECTIONS = 64;
/** Callers that have a connection each; further arrivals wait for one, as at a busy client. */
const CONNECTIONS = 1_000;
/** What the callers wait. Answers after it are none. */
const TIMEOUT_MS = 1_000;
const BATCH_ITEMS = 1_000;

export const overload: Scenario = {
  name: 'overload',
  purpose: 'one, two and ten times the arrivals that the service can answer',
  question: 'How much of its peak does a service still answer when far more is asked?',
  async run(options, start) {
    const { service, client, open, world, scope } = await prepare(options, start, {
      GATEWAY_WORKERS: '1',
    });
    const questions = mixedQuestions(world, 20_000, 'uniform');
    const texts = (bodies: readonly Buffer[]): string[] => bodies.map(String);
    const loads = [
      { name: 'Check', path: CHECK_PATH, bodies: texts(checkBodies(questions, scope)) },
      {
        name: `BatchCheck of ${BATCH_ITEMS}`,
        path: BATCH_CHECK_PATH,
        bodies: texts(batchBodies(questions, BATCH_ITEMS, scope)),
      },
    ];
    const pressure = new Pressure();
    // As callers behind a balancer send it: by it a service that is full need not receive a body to refuse it.
    const headers = { 'x-gatehouse-shard': `${scope['project_id']}/${scope['tenant_id']}` };
    const target = { port: Number(new URL(service.baseUrl).port), token: service.token, headers };
    const { seconds } = options;
    const results: Record<string, unknown> = {};
    for (const { name, path, bodies } of loads) {
      const saturate = (): Promise<PressureReport> =>
        pressure.press({ ...target, path, bodies, seconds, connections: SATURATING_CONNECTIONS });
      await saturate();
      const steps: unknown[] = [];
      for (const multiple of MULTIPLES) {
        // Measured anew beside each, as what the machine gives changes with what else it does.
        const atPeak = await cpuSeconds(service.pid);
        const peak = (await saturate()).goodPerSecond;
        const cpuBefore = await cpuSeconds(service.pid);
        const peakPerCpuSecond = (peak * seconds) / (cpuBefore - atPeak);
        const { result, mib } = await peakMib(
          service.pid,
          pressure.press({
            ...target,
            path,
            bodies,
            seconds,
            perSecond: peak * multiple,
            connections: CONNECTIONS,
            timeoutMs: TIMEOUT_MS,
          }),
        );
        // Where the generator and others take the processor away, what a second of it brings still shows waste.
        const goodPerCpuSecond =
          (result.goodPerSecond * seconds) / ((await cpuSeconds(service.pid)) - cpuBefore);
        steps.push({
          multiple,
          peakPerSecond: peak,
          goodputOfPeak: result.goodPerSecond / peak,
          goodputOfPeakByCpu: goodPerCpuSecond / peakPerCpuSecond,
          peakMib: mib,
          ...result,
        });
      }
      results[name] = { steps, mibAfter: await residentMib(service.pid) };
    }
    pressure.close();
    await client.close();
    await open.close();
    return { timeoutMs: TIMEOUT_MS, connections: CONNECTIONS, results };
  },
};
