import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { DisturbanceName } from '../../verify/disturb/disturbances.ts';
import { type Outcome, verify } from '../../verify/verify.ts';

/* `npm run verify` that is ended before its time: nothing it started is left, and it ends at once. */

/** Instances and servers that this process started and that still run, as `ps` says. */
function children(): readonly string[] {
  const lines = execFileSync('ps', ['-eo', 'pid,ppid,stat,args'], { encoding: 'utf8' }).split('\n');
  return lines.filter((line) => {
    const [, parent, state = ''] = line.trim().split(/\s+/);
    const isOurs = line.includes('src/main.ts') || line.includes('postgres -D');
    return isOurs && parent === String(process.pid) && !state.startsWith('Z');
  });
}

async function endAfter(
  isReached: (said: readonly string[]) => boolean,
  faults: readonly DisturbanceName[],
): Promise<{ outcome: Outcome; said: readonly string[] }> {
  const ending = new AbortController();
  const said: string[] = [];
  const run = verify({
    seed: '1',
    seconds: 600,
    roundSeconds: 600,
    instances: 2,
    faults,
    tree: process.cwd(),
    target: [],
    token: '',
    adminSecret: '',
    say: (text) => said.push(text),
    note: (text) => said.push(text),
    save: () => '',
    signal: ending.signal,
  });
  while (!isReached(said)) await sleep(20);
  ending.abort();
  return { outcome: await run, said };
}

test('ends while an instance starts', { timeout: 120_000 }, async () => {
  const { outcome, said } = await endAfter(
    (lines) => lines.at(-1)?.endsWith('joins') === true,
    ['kill'],
  );
  expect(outcome, said.join('\n')).toMatchObject({ isEnded: true, isGood: false, isWrong: false });
  expect(said.filter((line) => line.endsWith('joins'))).toHaveLength(1);
  expect(children()).toEqual([]);
});

test('ends before the first instances are there', { timeout: 120_000 }, async () => {
  const { outcome } = await endAfter((lines) => lines.length > 0, ['kill']);
  expect(outcome).toMatchObject({ isEnded: true, isGood: false, isWrong: false });
  expect(children()).toEqual([]);
});

test('ends while PostgreSQL is away, and starts no other one', { timeout: 120_000 }, async () => {
  const { outcome, said } = await endAfter(
    (lines) => lines.at(-1) === 'PostgreSQL stops',
    ['postgres-stop'],
  );
  expect(outcome, said.join('\n')).toMatchObject({ isEnded: true });
  expect(children()).toEqual([]);
});
