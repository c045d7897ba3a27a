import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LatencyHistogram, unpackHistogram } from '../../load/drive/latency-histogram.ts';
import { dueAt, shareOf } from '../../load/drive/load-plan.ts';
import { PlanError, parsePlan } from '../../load/drive/parse-plan.ts';
import { TargetError, assertTarget } from '../../load/drive/prepare-target.ts';
import { recordedQuestions } from '../../load/drive/recorded-questions.ts';

const MIXES = join(import.meta.dirname, '../../load/mixes');
const GOOD = {
  project: 'load-a',
  tenant: 't1',
  data: { scale: 0.1 },
  operations: [{ kind: 'check' }],
  stages: [{ seconds: 1, rate: 10 }],
};
const errorOf = (plan: unknown): string => {
  try {
    parsePlan(typeof plan === 'string' ? plan : JSON.stringify(plan));
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    expect(error.message.startsWith(error.field)).toBe(true);
    return error.message;
  }
  return 'no error';
};

describe('files of plans', () => {
  test.each(readdirSync(MIXES))('%s is one', (name) => {
    expect(parsePlan(readFileSync(join(MIXES, name), 'utf8')).project).toMatch(/^load-/);
  });

  test('fills in what is left out', () => {
    expect(parsePlan(JSON.stringify(GOOD))).toMatchObject({
      data: { scale: 0.1, seed: 7 },
      operations: [{ kind: 'check', name: 'check', weight: 1, spread: 'uniform' }],
      stages: [{ name: 'stage 1', seconds: 1, from: 10, to: 10 }],
    });
  });

  test.each([
    ['{', 'is no JSON: '],
    ['[]', 'is no object'],
    [{ ...GOOD, projects: 1 }, 'projects: is none of project, tenant,'],
    [{ ...GOOD, project: 7 }, 'project: is no text of 1 to 64 characters'],
    [
      { ...GOOD, project: 'atlas' },
      'project: must be named load-… to be filled with data, and is atlas',
    ],
    [
      { ...GOOD, project: 'atlas', data: undefined, operations: [{ kind: 'write' }] },
      'operations[0].kind: write needs a project named load-…, not atlas',
    ],
    [{ ...GOOD, data: undefined }, 'operations[0].kind: check asks about data, which is absent'],
    [{ ...GOOD, data: { scale: 'x' } }, 'data.scale: is no number from 0.1 to 100'],
    [{ ...GOOD, operations: [] }, 'operations: is no list of 1 to 50'],
    [
      { ...GOOD, operations: [{ kind: 'chek' }] },
      'operations[0].kind: is none of check, batch_check',
    ],
    [
      { ...GOOD, operations: [{ kind: 'check', items: 3 }] },
      'operations[0].items: is none of kind, name, weight, spread',
    ],
    [
      { ...GOOD, operations: [{ kind: 'check' }, { kind: 'check' }] },
      'operations[1].name: check is the name of another one',
    ],
    [
      {
        ...GOOD,
        operations: [
          { kind: 'request', path: '/workspace.v1.AuthzService/WriteRelationTuples', body: {} },
        ],
      },
      'operations[0].path: is none of /workspace.v1.AuthzService/Check,',
    ],
    [{ ...GOOD, stages: [{ seconds: 1 }] }, 'stages[0]: has either rate or callers'],
    [
      { ...GOOD, stages: [GOOD.stages[0], { seconds: -1, rate: 1 }] },
      'stages[1].seconds: is no number',
    ],
    [
      { ...GOOD, stages: [{ seconds: 1, rate: { from: 1 } }] },
      'stages[0].rate.to: is no number from 0',
    ],
    [{ ...GOOD, stages: [{ seconds: 1, callers: 1.5 }] }, 'stages[0].callers: is no whole number'],
    [
      {
        ...GOOD,
        stages: [
          { name: 'a', seconds: 1, rate: 1 },
          { name: 'a', seconds: 1, rate: 1 },
        ],
      },
      'stages[1].name: a is the name of another one',
    ],
    [{ ...GOOD, deadline_ms: 0 }, 'deadline_ms: is no number from 1 to 600000'],
  ])('%j is refused by the path of its field', (plan, message) => {
    expect(errorOf(plan)).toContain(message);
  });

  test('whatever stands in one, the error is one that names a field', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...Object.keys(GOOD)), (value, field) => {
        errorOf({ ...GOOD, [field]: value });
      }),
      { numRuns: 200 },
    );
  });
});

describe('recorded questions', () => {
  const HEAD = '{"recorded":"x","every":1}\n';
  const FIELDS = { project_id: 'p', tenant_id: 't', namespace: 'n', object_id: 'o', relation: 'r' };
  const line = (at_ms: unknown, more: object = {}): string =>
    `${JSON.stringify({ at_ms, ...FIELDS, subject_user_id: 'u', ...more })}\n`;
  /** Their times in milliseconds, of each generator. */
  const dueOf = (text: string, of = 1, speed = 1, repeat = 1): number[][] => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-recorded-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'questions.jsonl');
    writeFileSync(path, text);
    return Array.from({ length: of }, (_, index) =>
      recordedQuestions({ path, speed, repeat }, { index, of }).map(({ dueMs }) => dueMs),
    );
  };

  test('are due in their rhythm, at a speed, each so many times, shared by the generators', () => {
    const text = `${HEAD}${line(1_000)}${line(1_400)}${line(2_000)}{"at_ms":1,"proj`;
    expect(dueOf(text)).toEqual([[0, 400, 1_000]]);
    expect(dueOf(text, 1, 0.5)).toEqual([[0, 800, 2_000]]);
    expect(dueOf(text, 2, 1, 2)).toEqual([
      [0, 400, 1_000],
      [200, 700, 1_000],
    ]);
  });

  test.each([
    [`${HEAD}${line(1, { project_id: 7 })}`, 'line 2, project_id: is no text'],
    [`${HEAD}${line('soon')}`, 'line 2, at_ms: is no number'],
    [`${HEAD}${line(1)}{\n`, 'line 3: is no JSON'],
    [`${HEAD}null\n`, 'line 2: is no object'],
    [HEAD, 'holds no questions'],
  ])('%j is told by its line', (text, message) => {
    expect(() => dueOf(text)).toThrow(message);
    expect(() => dueOf(text)).toThrow(PlanError);
  });
});

describe('targets', () => {
  const at = (url: string) => ({ url, token: undefined });

  test.each(['http://127.0.0.1:1', 'http://localhost', 'http://[::1]:80', 'https://a.localhost'])(
    '%s is this machine',
    (url) => expect(() => assertTarget(at(url), false)).not.toThrow(),
  );

  test.each([
    'http://example.com',
    'http://10.0.0.1',
    'http://127.0.0.1.example.com',
    'http://localhost.example.com',
    'http://[::2]',
    'http://0.0.0.0',
  ])('%s is another one, which somebody must agree to', (url) => {
    expect(() => assertTarget(at(url), false)).toThrow(/add --yes if that is meant/);
    expect(() => assertTarget(at(url), true)).not.toThrow();
  });

  test.each(['ftp://127.0.0.1', 'http://u:p@127.0.0.1', 'nonsense'])('%s is none', (url) => {
    expect(() => assertTarget(at(url), true)).toThrow(TargetError);
  });
});

describe('arrivals', () => {
  const rate = fc.integer({ min: 0, max: 50_000 });

  test('each is due when the area below the rate has come to it', () => {
    fc.assert(
      fc.property(
        rate,
        rate,
        fc.integer({ min: 1, max: 600 }),
        fc.nat(1e6),
        (from, to, seconds, n) => {
          const stage = { name: 's', seconds, from, to };
          /** The area below the rate. */
          const arrivalsWithin = (t: number): number =>
            from * t + ((to - from) * t * t) / (2 * seconds);
          const total = arrivalsWithin(seconds);
          fc.pre(total > 1);
          const count = n % Math.floor(total);
          const due = dueAt(stage, count);
          expect(due).toBeGreaterThanOrEqual(0);
          expect(due).toBeLessThanOrEqual(seconds * (1 + 1e-9));
          expect(Math.abs(arrivalsWithin(due) - count)).toBeLessThan(1e-3 + count * 1e-6);
        },
      ),
    );
  });

  test('generators share all of it', () => {
    fc.assert(
      fc.property(rate, rate, fc.integer({ min: 1, max: 64 }), (from, callers, of) => {
        const shares = Array.from({ length: of }, (_, i) =>
          shareOf({ name: 's', seconds: 1, callers }, of, i),
        );
        expect(shares.reduce((sum, one) => sum + ('callers' in one ? one.callers : 0), 0)).toBe(
          callers,
        );
        const open = shareOf({ name: 's', seconds: 1, from, to: from }, of, 0);
        expect('from' in open && open.from * of).toBeCloseTo(from, 6);
      }),
    );
  });
});

describe('histograms of latencies', () => {
  test('percentiles are those of the values, to one part in 100', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.001, max: 100_000, noNaN: true }), {
          minLength: 1,
          maxLength: 300,
          size: 'max',
        }),
        fc.constantFrom(1, 50, 90, 99, 99.9, 100),
        (values, percent) => {
          const [one, other] = [new LatencyHistogram(), new LatencyHistogram()];
          values.forEach((ms, i) => (i % 2 === 0 ? one : other).record(ms));
          const all = unpackHistogram(one.pack());
          all.add(other.pack());
          const sorted = values.toSorted((a, b) => a - b);
          const exact = sorted[
            Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1
          ] as number;
          expect(all.count).toBe(values.length);
          expect(Math.abs(all.percentile(percent) - exact)).toBeLessThanOrEqual(
            exact * 0.01 + 0.001,
          );
        },
      ),
    );
  });
});
