import { expect, test } from 'vitest';
import { reportedRun } from '../shared/loop-report.ts';
import { BackgroundLoops } from './background-loops.ts';
import { MetricStore } from './metric-store.ts';

type Line = readonly [level: string, event: string, fields: object];

function started(): { loops: BackgroundLoops; lines: Line[]; wait: (ms: number) => void } {
  let nowMs = 1_000;
  const lines: Line[] = [];
  const loops = new BackgroundLoops({
    log: (...line) => void lines.push(line),
    describe: (error) => ({ error: String(error) }),
    monotonicMs: () => nowMs,
  });
  return { loops, lines, wait: (ms) => (nowMs += ms) };
}

const failed = (failures: number, error: string): object => ({ loop: 'purge', failures, error });

test('a loop fails from its third failure in a row on, and is logged at first, then, and once a minute', () => {
  const { loops, lines, wait } = started();
  const report = loops.loop('purge');
  report.failed('one');
  report.failed('two');
  expect(loops.failing).toEqual([]);
  report.failed('three');
  expect(loops.failing).toEqual(['purge']);
  expect(lines).toEqual([
    ['warn', 'background_failed', failed(1, 'one')],
    ['error', 'background_failed', failed(3, 'three')],
  ]);
  wait(59_999);
  report.failed('four');
  wait(1);
  report.failed('five');
  report.succeeded();
  report.succeeded();
  expect(loops.failing).toEqual([]);
  expect(lines.slice(2)).toEqual([
    ['error', 'background_failed', failed(5, 'five')],
    ['warn', 'background_recovered', { loop: 'purge', failures: 5 }],
  ]);
});

test('one that fails now and then has a line a minute', () => {
  const { loops, lines, wait } = started();
  const report = loops.loop('purge');
  for (let second = 0; second < 120; second += 2) {
    report.failed('away');
    report.succeeded();
    wait(2_000);
  }
  expect(lines.map(([, event]) => event)).toEqual([
    'background_failed',
    'background_recovered',
    'background_failed',
    'background_recovered',
  ]);
});

test('a success in between begins anew, and loops do not count for each other', async () => {
  const { loops } = started();
  const refuse = (): Promise<never> => Promise.reject(new Error('away'));
  for (let run = 0; run < 4; run++) {
    await reportedRun(loops.loop('purge'), run === 2 ? () => Promise.resolve() : refuse);
    await reportedRun(loops.loop('claims'), refuse);
  }
  expect(loops.failing).toEqual(['claims']);
});

test('runs are counted, and a loop that has not run yet is shown', async () => {
  const { loops } = started();
  const store = new MetricStore('notify');
  loops.showIn(store, 'notify');
  loops.loop('idle');
  const report = loops.loop('purge');
  const shown = async (): Promise<readonly string[]> =>
    (await store.render()).split('\n').filter((line) => line.startsWith('notify_background'));
  for (let run = 0; run < 3; run++) report.failed('away');
  expect(await shown()).toEqual([
    'notify_background_runs_total{loop="idle",outcome="done"} 0',
    'notify_background_runs_total{loop="idle",outcome="failed"} 0',
    'notify_background_runs_total{loop="purge",outcome="done"} 0',
    'notify_background_runs_total{loop="purge",outcome="failed"} 3',
    'notify_background_failing{loop="idle"} 0',
    'notify_background_failing{loop="purge"} 1',
  ]);
  report.succeeded();
  expect(await shown()).toContain('notify_background_runs_total{loop="purge",outcome="failed"} 3');
  expect(await shown()).toContain('notify_background_runs_total{loop="purge",outcome="done"} 1');
  expect(await shown()).toContain('notify_background_failing{loop="purge"} 0');
});
