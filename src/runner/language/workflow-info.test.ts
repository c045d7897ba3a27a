import { expect, test } from 'vitest';
import { readWorkflow } from './read-workflow.ts';
import { workflowInfo } from './workflow-info.ts';

const NOW = new Date('2026-02-01T12:00:00Z');

async function infoOf(cron: string, timezone: string | undefined) {
  const text = `on: { schedule: [{ cron: '0 9 * * *' }] }
jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: ls }] } }
`;
  const fileName = 'a.yml';
  const source = { text, fileName, path: '.github/workflows/a.yml' };
  const { workflow, problems } = await readWorkflow(source, () => Promise.resolve(undefined));
  if (workflow === undefined) throw new Error('no workflow');
  const triggers = [{ event: 'schedule', crons: [{ cron, timezone }, { cron: '30 9 * * *' }] }];
  const file = { name: fileName, fileName, filePath: fileName, problems };
  return workflowInfo({ ...file, workflow: { ...workflow, triggers } }, NOW);
}

test('a schedule has its next time, none where it never comes', async () => {
  const { schedules, warnings } = await infoOf('0 0 30 feb *', 'Asia/Tokyo');
  expect(schedules).toEqual([
    { cron: '0 0 30 feb *', timezone: 'Asia/Tokyo', nextAt: undefined },
    { cron: '30 9 * * *', timezone: undefined, nextAt: '2026-02-02T09:30:00.000Z' },
  ]);
  expect(warnings).toBeUndefined();
});

test('a next time that cannot be found is a warning, and the others have theirs', async () => {
  const { schedules, warnings } = await infoOf('0 9 * * *', 'Mars/Olympus');
  expect(schedules?.[1]?.nextAt).toBe('2026-02-02T09:30:00.000Z');
  expect(warnings).toEqual([
    { message: expect.stringContaining('Mars/Olympus'), line: 1, col: 1, file: undefined },
  ]);
});
