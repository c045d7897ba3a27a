import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runOf } from '../../load/report/page.ts';
import { SCENARIOS } from '../../load/scenarios.ts';
import { load, loadInProcess, startFake } from './support.ts';

const RUN_TIMEOUT_MS = 120_000;
const PLAN = {
  project: 'load-test',
  tenant: 't1',
  data: { scale: 0.1 },
  operations: [{ kind: 'check' }],
  stages: [{ seconds: 1, rate: 80 }],
};

let folder = '';
const at = (name: string): string => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-drive-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a run that is not begun', () => {
  const refused = async (args: readonly string[], message: string | RegExp): Promise<void> => {
    const { code, stderr } = await loadInProcess(args);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
    expect(stderr).not.toContain('    at ');
  };

  test.each([
    [['--target', 'http://load.example:8080'], /load\.example:8080 is not this machine.*--yes/],
    [['--target', 'nonsense'], /--target nonsense is no URL/],
    [['--replay', 'x.jsonl'], /--replay needs --target/],
    [['--target', 'http://127.0.0.1:1', '--generators', '1.5'], /--generators is no number/],
    [['--target', 'http://127.0.0.1:1', '--tokens', 'x'], /Unknown option '--tokens'/],
    [['--json', 'no-such-folder/x.json'], /^no-such-folder\/x\.json: its folder is not there/],
    [['check', '--report', 'no-such-folder/x.html'], /^no-such-folder\/x\.html: its folder/],
    [['check', 'mixed'], /^one scenario at a time/],
    [['check', '--seconds', '1.5'], /^--seconds must be a whole number from 1 on/],
    [['check', '--scale', '0.05'], /^--scale must be a number from 0\.1 on/],
    [['compare', 'only-one'], /compare takes two files/],
    [['compare', 'package.json', 'package.json'], /^package\.json is no run that this release/],
  ] as [string[], RegExp][])('%j', async (args, message) => refused(args, message));

  test('a file that is none is told by its field', async () => {
    writeFileSync(at('bad.json'), JSON.stringify({ ...PLAN, stages: [{ seconds: 1, rate: 'x' }] }));
    await refused(['--mix', at('bad.json')], /^stages\[0\]\.rate: is no number/);
    writeFileSync(at('foreign.json'), JSON.stringify({ ...PLAN, project: 'atlas' }));
    await refused(
      ['--target', 'http://127.0.0.1:1', '--mix', at('foreign.json')],
      /project: must be named load-…/,
    );
  });
});

test(
  'what interrupts a run ends it in order',
  async () => {
    let interrupt = (): void => undefined;
    const url = await startFake(() => {
      interrupt();
      return { status: 200, body: {} };
    });
    const body = { namespace: 'doc', object_id: 'd', relation: 'viewer' };
    const operations = [{ kind: 'request', path: '/workspace.v1.AuthzService/Expand', body }];
    const stages = [{ seconds: 600, rate: 20 }];
    const plan = { project: 'anybody', tenant: 't', operations, stages };
    writeFileSync(at('long.json'), JSON.stringify(plan));
    const args = ['--target', url, '--mix', at('long.json'), '--json', at('long-run.json')];
    const { code } = await load(args, {
      // Twice, as npm passes on what the terminal has sent already.
      onStart: (signal) => {
        interrupt = () => {
          interrupt = () => undefined;
          signal('SIGINT');
          setTimeout(signal, 50, 'SIGINT');
        };
      },
    });
    expect(code).toBe(0);
    const { isWhole, seconds } = runOf(readFileSync(at('long-run.json'), 'utf8'), 'long-run.json');
    expect(isWhole).toBe(false);
    expect(seconds.length).toBeGreaterThan(0);
    expect(seconds.length).toBeLessThan(60);
  },
  RUN_TIMEOUT_MS,
);

test(
  'an answer after the deadline counts as refused',
  async () => {
    const url = await startFake(async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { status: 200, body: {} };
    });
    const body = { namespace: 'doc', object_id: 'd', relation: 'viewer' };
    const operations = [{ kind: 'request', path: '/workspace.v1.AuthzService/Expand', body }];
    const stages = [{ seconds: 1, rate: 10 }];
    const plan = { project: 'anybody', tenant: 't', operations, stages, deadline_ms: 100 };
    writeFileSync(at('late.json'), JSON.stringify(plan));
    const { code, stdout } = await loadInProcess(['--target', url, '--mix', at('late.json')]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ asked: 10, answered: 0, refused: 10 });
  },
  RUN_TIMEOUT_MS,
);

test('load/README.md has every scenario', () => {
  const text = readFileSync('load/README.md', 'utf8');
  for (const { name } of SCENARIOS) expect(text).toContain(`\`${name}\``);
});

test('tells how it is used, and what of its arguments is wrong', async () => {
  for (const args of [['--help'], []]) {
    const { code, stdout } = await loadInProcess(args);
    expect(code).toBe(0);
    for (const { name } of SCENARIOS) expect(stdout).toContain(`  ${name} `);
  }
  const unknown = await loadInProcess(['check-uniform']);
  expect([unknown.code, unknown.stdout]).toEqual([2, '']);
  expect(unknown.stderr).toMatch(/^there is no scenario check-uniform\nusage: /);
  const wrong = await loadInProcess(['check', '--secs', '5']);
  expect([wrong.code, wrong.stdout]).toEqual([2, '']);
  expect(wrong.stderr).toMatch(/^Unknown option '--secs'.*\nusage: /);
});
