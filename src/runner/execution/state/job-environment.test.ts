import { expect, test } from 'vitest';
import { JobEnvironment } from './job-environment.ts';

test('a fork changes nothing until it is applied; then only what it changed', () => {
  const main = new JobEnvironment({ A: '1', B: '1' });
  main.addPath('/first');
  const fork = main.fork();
  fork.set('A', 'fork');
  fork.addPath('/fork');
  main.set('B', 'main');
  main.addPath('/main');
  expect(main.values).toEqual({ A: '1', B: 'main' });
  main.apply(fork);
  expect(main.values).toEqual({ A: 'fork', B: 'main' });
  expect(main.pathInFrontOf('/bin')).toBe('/fork:/main:/first:/bin');
});

test('a folder that is added again comes first, once; an empty PATH gains no empty entry', () => {
  const environment = new JobEnvironment({});
  expect(environment.pathInFrontOf('/bin')).toBe('/bin');
  for (const folder of ['/a', '/b', '/a']) environment.addPath(folder);
  expect(environment.pathInFrontOf('/bin')).toBe('/a:/b:/bin');
  expect(environment.pathInFrontOf('')).toBe('/a:/b');
});

test('values are snapshots', () => {
  const environment = new JobEnvironment({ A: '1' });
  const before = environment.values;
  environment.set('A', '2');
  expect(before).toEqual({ A: '1' });
});
