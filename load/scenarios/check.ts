import { type Ask, type LoadOptions, type Scenario, stageFigures, askOwn } from './scenario.ts';

/** What as many callers as there are connections get answered, and latencies at half of that. */
async function measure(ask: Ask, title: string, operation: object, options: LoadOptions) {
  const { rate, seconds, connections: callers } = options;
  const operations = [operation];
  const peak = await ask(`${title}, saturated`, {
    operations,
    stages: [
      { name: 'warm up', seconds: 3, callers },
      { name: 'saturated', seconds, callers },
    ],
  });
  const saturated = stageFigures(peak, 'saturated');
  const half = rate ?? Math.max(1, saturated.answeredPerSecond / 2);
  const run = await ask(`${title}, half of it`, {
    operations,
    stages: [
      // At the same rate, so that its connections are open.
      { name: 'warm up', seconds: 3, rate: half },
      { name: 'half', seconds, rate: half },
    ],
  });
  return { figures: { saturated, half: stageFigures(run, 'half') }, run };
}

export const check: Scenario = {
  name: 'check',
  question:
    'How fast are single checks, when no question repeats but by chance (uniform), and when few draw most (zipf)?',
  run: async (options) => {
    const ask = await askOwn({}, options);
    const uniform = await measure(ask, 'uniform', { kind: 'check', spread: 'uniform' }, options);
    const zipf = await measure(ask, 'zipf', { kind: 'check', spread: 'zipf' }, options);
    return {
      figures: { uniform: uniform.figures, zipf: zipf.figures },
      runs: [
        { label: 'uniform', run: uniform.run },
        { label: 'zipf', run: zipf.run },
      ],
    };
  },
};

export const batchCheck: Scenario = {
  name: 'batch-check',
  question:
    'How many batches of 100 does one worker decide a second, and how long does one take at half of that?',
  run: async (options) => {
    const ask = await askOwn({ GATEWAY_WORKERS: '1' }, options);
    const operation = { kind: 'batch_check', items: 100 };
    const { figures, run } = await measure(ask, 'batches of 100', operation, options);
    return { figures, runs: [{ label: '', run }] };
  },
};
