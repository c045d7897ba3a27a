import { type Scenario, stageFigures, askOwn } from './scenario.ts';

export const mixed: Scenario = {
  name: 'mixed',
  question: 'What does one write among a hundred requests do to the checks of the same shard?',
  run: async (options) => {
    const ask = await askOwn({}, options);
    const { rate = 2000, seconds } = options;
    const checks = { kind: 'check', weight: 99 };
    const stages = [
      { name: 'warm up', seconds: 3, rate },
      { name: 'steady', seconds, rate },
    ];
    const alone = await ask('checks alone', { operations: [checks], stages });
    const operations = [checks, { kind: 'write', weight: 1 }];
    const withWrites = await ask('with writes', { operations, stages });
    return {
      figures: {
        alone: stageFigures(alone, 'steady'),
        withWrites: stageFigures(withWrites, 'steady'),
      },
      runs: [
        { label: 'alone', run: alone },
        { label: 'with writes', run: withWrites },
      ],
    };
  },
};
