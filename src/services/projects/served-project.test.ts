import { expect, test } from 'vitest';
import { ServedProject } from './served-project.ts';

test('asks once a second at most, and tells what it is told', async () => {
  let now = 5_000;
  let asked = 0;
  let failure: Error | undefined;
  const served = new ServedProject(
    () => now,
    () => {
      asked++;
      return failure === undefined ? Promise.resolve() : Promise.reject(failure);
    },
  );
  await served.refresh();
  now += 999;
  await served.refresh();
  expect(asked).toBe(0);
  now += 1;
  await served.refresh();
  await served.refresh();
  expect(asked).toBe(1);
  now += 1_000;
  failure = new Error('suspended');
  await expect(served.refresh()).rejects.toThrow('suspended');
  // Whoever continues nevertheless is asked again.
  await expect(served.refresh()).rejects.toThrow('suspended');
  expect(asked).toBe(3);
});
