import { expect, test } from 'vitest';
import { makeWorkspace } from '../../../../test/support/runner.ts';
import { AppError } from '../../../shared/app-error.ts';
import type { Clock } from '../../../shared/time/clock.ts';
import { createWorkflowCatalog } from '../../host/project/workflow-catalog.ts';
import type { StartRequest, WorkflowCatalog } from '../../model/ports.ts';
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

/** A schedule over these files, which tells what each look started. */
function looking(
  files: Readonly<Record<string, string>>,
  from: string,
  catalogOf = (dir: string): WorkflowCatalog => createWorkflowCatalog(dir),
) {
  const started: StartRequest[] = [];
  const problems: string[] = [];
  const clock = new SetClock();
  clock.set(from);
  const start = (request: StartRequest) => {
    started.push(request);
    if (request.workflow === 'wrong.yml') return Promise.reject(new TypeError('not foreseen'));
    return Promise.resolve({ run: {}, warnings: [] });
  };
  const schedule = new Schedule(
    catalogOf(makeWorkspace(files)),
    // Only `start` is called.
    { start } as unknown as ConstructorParameters<typeof Schedule>[1],
    clock,
    (event) => problems.push(event),
    { succeeded: () => problems.push('ok'), failed: (error) => problems.push(String(error)) },
  );
  const lookAt = async (time: string): Promise<readonly string[]> => {
    started.length = 0;
    clock.set(time);
    await schedule.look();
    return started.map(({ workflow }) => workflow);
  };
  return { lookAt, problems };
}

test('a file with a wrong schedule, and one that fails to start, cost themselves alone', async () => {
  const every = (cron: string): string => `on: { schedule: [{ cron: '${cron}' }] }\n${job}\n`;
  const files = {
    '.github/workflows/a.yml': every('*/90 * * * *'),
    '.github/workflows/b.yml': every('20/15 * * * *'),
    '.github/workflows/wrong.yml': every('20 * * * *'),
    '.github/workflows/z.yml': every('5/15 * * * *'),
  };
  const { lookAt, problems } = looking(files, '2026-06-01T02:19:00Z');
  expect(await lookAt('2026-06-01T02:20:00Z')).toEqual(['b.yml', 'wrong.yml', 'z.yml']);
  expect(problems).toEqual(['TypeError: not foreseen']);
  expect(await lookAt('2026-06-01T02:34:00Z')).toEqual([]);
  expect(await lookAt('2026-06-01T02:35:00Z')).toEqual(['b.yml', 'z.yml']);
  expect(problems.slice(1)).toEqual(['ok', 'ok']);
});

test('a schedule whose next time cannot be found stops no other', async () => {
  const files = {
    '.github/workflows/a.yml': `on: { schedule: [{ cron: '0 * * * *' }] }\n${job}\n`,
    '.github/workflows/b.yml': `on: { schedule: [{ cron: '0 * * * *' }] }\n${job}\n`,
  };
  const crons = [{ cron: '0 * * * *', timezone: 'Mars/Olympus' }];
  // As if a zone went away while the runner runs.
  const { lookAt, problems } = looking(files, '2026-06-01T01:59:00Z', (dir) => {
    const catalog = createWorkflowCatalog(dir);
    const list = async () =>
      (await catalog.list()).map((file) =>
        file.workflow === undefined || file.fileName === 'b.yml'
          ? file
          : { ...file, workflow: { ...file.workflow, triggers: [{ event: 'schedule', crons }] } },
      );
    return { list, find: (name) => catalog.find(name) };
  });
  expect(await lookAt('2026-06-01T02:00:00Z')).toEqual(['b.yml']);
  expect(problems.at(-1)).toContain('Mars/Olympus');
});

// Of the year 2026: from when it is looked at each minute, and the minutes that started it.
test.each([
  ['Europe/Berlin', '30 2 * * *', '2026-03-28T23:00Z', ['03-29T01:00']],
  ['Europe/Berlin', '30 2 * * *', '2026-10-24T22:00Z', ['10-25T00:30']],
  ['America/New_York', '15,45 2 * * *', '2026-03-08T05:00Z', ['03-08T07:00']],
  ['America/New_York', '0,30 1 * * *', '2026-11-01T04:00Z', ['11-01T05:00', '11-01T05:30']],
  ['Australia/Lord_Howe', '10 2 * * *', '2026-10-03T13:30Z', ['10-03T15:30']],
  ['Australia/Lord_Howe', '40 1 * * *', '2026-04-04T13:00Z', ['04-04T14:40']],
])('in %s, %s starts once where the clock changes', async (timezone, cron, from, wanted) => {
  const text = `on: { schedule: [{ cron: '${cron}', timezone: ${timezone} }] }\n${job}\n`;
  const { lookAt } = looking({ '.github/workflows/a.yml': text }, from);
  const found: string[] = [];
  for (let minute = 1; minute <= 6 * 60; minute += 1) {
    const time = new Date(Date.parse(from) + minute * 60_000).toISOString();
    for (const _ of await lookAt(time)) found.push(time.slice(5, 16));
  }
  expect(found).toEqual(wanted);
});

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
