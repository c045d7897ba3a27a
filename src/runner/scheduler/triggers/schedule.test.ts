import { expect, test } from 'vitest';
import { makeWorkspace } from '../../../../test/support/runner.ts';
import { AppError } from '../../../shared/app-error.ts';
import type { Clock } from '../../../shared/clock.ts';
import { createWorkflowCatalog } from '../../host/project/workflow-catalog.ts';
import type { StartRequest } from '../../model/ports.ts';
import { Schedule } from './schedule.ts';

const job = 'jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: ls }] } }';
const FILES = {
  '.github/workflows/hourly.yml': `on: { schedule: [{ cron: '30 * * * *' }, { cron: '15 4 * * *', timezone: Europe/Paris }] }\n${job}\n`,
  '.github/workflows/often.yml': `on: { schedule: [{ cron: '*/10 * * * *' }], push: }\n${job}\n`,
  '.github/workflows/never.yml': `on: push\n${job}\n`,
};

class SetClock implements Clock {
  ms = 0;

  set(time: string): void {
    this.ms = Date.parse(time);
  }

  nowMs(): number {
    return this.ms;
  }

  monotonicMs(): number {
    return this.ms;
  }
}

test('starts what became due since the last look, in its time zone, once each', async () => {
  const started: StartRequest[] = [];
  const problems: string[] = [];
  const clock = new SetClock();
  let isFull = false;
  clock.set('2026-06-01T01:59:30Z');
  const runs = {
    start: (request: StartRequest) => {
      started.push(request);
      if (isFull) return Promise.reject(new AppError('QUEUE_FULL', 'full'));
      return Promise.resolve({ run: {}, warnings: [] });
    },
  };
  const schedule = new Schedule(
    createWorkflowCatalog(makeWorkspace(FILES)),
    // Only `start` is called.
    runs as unknown as ConstructorParameters<typeof Schedule>[1],
    clock,
    (event) => problems.push(event),
    { succeeded: () => undefined, failed: (error) => problems.push(String(error)) },
  );
  const lookAt = async (time: string): Promise<readonly string[]> => {
    started.length = 0;
    clock.set(time);
    await schedule.look();
    return started.map(({ workflow, payload }) => `${workflow} ${JSON.stringify(payload)}`);
  };
  expect(await lookAt('2026-06-01T01:59:59Z')).toEqual([]);
  expect(await lookAt('2026-06-01T02:00:00Z')).toEqual(['often.yml {"schedule":"*/10 * * * *"}']);
  expect(await lookAt('2026-06-01T02:00:30Z')).toEqual([]);
  // 04:15 in Paris, in summer.
  expect(await lookAt('2026-06-01T02:15:00Z')).toEqual([
    'hourly.yml {"schedule":"15 4 * * *"}',
    'often.yml {"schedule":"*/10 * * * *"}',
  ]);
  // Two hours asleep: each schedule once, not for each time it was missed.
  expect(await lookAt('2026-06-01T04:31:00Z')).toEqual([
    'hourly.yml {"schedule":"30 * * * *"}',
    'often.yml {"schedule":"*/10 * * * *"}',
  ]);
  expect(started.every(({ event }) => event === 'schedule')).toBe(true);
  expect(problems).toEqual([]);
  isFull = true;
  await lookAt('2026-06-01T04:40:00Z');
  expect(problems).toEqual(['schedule.not_started']);
  schedule.stop();
  expect(await lookAt('2026-06-01T06:00:00Z')).toEqual([]);
});
