import { type Ask, type LoadOptions, type Scenario, stageFigures, askOwn } from './scenario.ts';

const MULTIPLES = [1, 2, 10];
/** As many callers as a saturated service needs to be kept busy. */
const CALLERS = 64;
/** What callers wait. Answers after it are none. */
const DEADLINE_MS = 1_000;
/** Until all is answered that was asked before. */
const REST_SECONDS = 3;

async function measure(ask: Ask, operation: object, { seconds }: LoadOptions) {
  const operations = [operation];
  const saturate = (name: string) => ({ name, seconds, callers: CALLERS });
  const first = await ask('peak', { operations, stages: [saturate('warm up'), saturate('peak')] });
  const expected = Math.max(1, stageFigures(first, 'peak').answeredPerSecond);
  const run = await ask('overload', {
    operations,
    deadline_ms: DEADLINE_MS,
    // The peak is measured anew beside each, as what the machine gives changes with what else it does.
    stages: MULTIPLES.flatMap((multiple) => [
      saturate(`peak before ${multiple}`),
      { name: `times ${multiple}`, seconds, rate: expected * multiple },
      { name: `rest after ${multiple}`, seconds: REST_SECONDS, rate: { from: 0, to: 0 } },
    ]),
  });
  const steps = MULTIPLES.map((multiple) => {
    const peak = stageFigures(run, `peak before ${multiple}`);
    const pressed = stageFigures(run, `times ${multiple}`);
    return {
      peakPerSecond: peak.answeredPerSecond,
      answeredOfPeak: pressed.answeredPerSecond / peak.answeredPerSecond,
      // Where the generator and others take the processor away, what a second of it brings still shows waste.
      answeredOfPeakByCpu: pressed.answeredPerCpuSecond / peak.answeredPerCpuSecond,
      ...pressed,
    };
  });
  return {
    steps: Object.fromEntries(steps.map((step, i) => [`times ${MULTIPLES[i]}`, step])),
    run,
  };
}

export const overload: Scenario = {
  name: 'overload',
  question: 'How much of its peak does a service still answer when ten times as much is asked?',
  run: async (options) => {
    const ask = await askOwn({ GATEWAY_WORKERS: '1' }, options);
    const checks = await measure(ask, { kind: 'check' }, options);
    const batches = await measure(ask, { kind: 'batch_check', items: 1_000 }, options);
    return {
      figures: { checks: checks.steps, batches: batches.steps },
      runs: [
        { label: 'checks', run: checks.run },
        { label: 'batches', run: batches.run },
      ],
    };
  },
};
