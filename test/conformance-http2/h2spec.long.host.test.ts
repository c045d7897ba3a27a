import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { casesOf, expectedCases, h2specProgram, missingOf, runH2spec } from './h2spec.ts';

const program = h2specProgram();

test('a report of JUnit is read, and a case that fails is missed', () => {
  const [first = '', second = ''] = expectedCases().passed;
  const [section, ...title] = first.split(' ');
  const xml =
    `<testcase package="${section}" classname="${title.join(' ')}" time="0.1"></testcase>` +
    '<testcase package="x" classname="y" time="0.1"><failure>no</failure></testcase>';
  const results = casesOf(xml);
  expect(results).toEqual([
    { name: first, isPassed: true },
    { name: 'x y', isPassed: false },
  ]);
  expect(missingOf(results)).not.toContain(first);
  expect(missingOf(results)).toContain(second);
});

describe.skipIf(program === undefined)('h2spec (Go builds it)', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
  }, 120_000);
  afterAll(async () => {
    await service.stop();
  });

  test('all cases of the list pass', async () => {
    const results = await runH2spec(program ?? '', Number(service.address.split(':')[1]));
    const { passed, failed } = expectedCases();
    expect(missingOf(results)).toEqual([]);
    expect(results.length).toBe(passed.length + failed.length);
  }, 240_000);
});
