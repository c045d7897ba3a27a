import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkHistory, isClean } from '../../verify/checker/check-history.ts';
import { loadRun, saveRun } from '../../verify/checker/history-file.ts';
import type { DisturbanceName } from '../../verify/disturb/disturbances.ts';
import { verify } from '../../verify/verify.ts';
import { byLength } from '../support/test-length.ts';

/* A short run of `npm run verify`: docs/consistency.md says what a whole one is. */

const SECONDS = byLength(1, 12);
const DISTURBANCES_MIN = byLength(1, 2);

test('two instances under load and disturbances answer as one', { timeout: 180_000 }, async () => {
  const out = mkdtempSync(join(tmpdir(), 'gatehouse-verify-test-'));
  onTestFinished(() => rmSync(out, { recursive: true, force: true }));
  const said: string[] = [];
  const unclean: string[] = [];
  let reads = 0;
  let disturbances = 0;
  const ending = new AbortController();
  const outcome = await verify({
    signal: ending.signal,
    seed: process.env['SEED'] ?? `${Date.now() % 1_000_000}`,
    seconds: 8 * SECONDS,
    roundSeconds: SECONDS,
    instances: 2,
    faults: [
      'cut-commits',
      'lost-answers',
      'lost-notifications',
      'short-pause',
      ...byLength<DisturbanceName[]>([], ['restart', 'alone']),
    ],
    tree: process.cwd(),
    target: [],
    token: '',
    adminSecret: '',
    say: (text) => said.push(text),
    save: (name, run) => {
      const path = join(out, `${name}.jsonl.gz`);
      saveRun(path, run);
      const { history } = loadRun(path);
      const again = checkHistory(history);
      if (!isClean(again)) unclean.push(path);
      reads += again.coverage.reads;
      disturbances += history.disturbances.length;
      // A machine that is busy with other tests gets too little done in one round: it has more of them.
      if (reads > 100 && disturbances >= DISTURBANCES_MIN) ending.abort();
      return path;
    },
  });
  // Nobody listens any more: what comes of it would be an unhandled rejection.
  ending.abort();
  expect(outcome.isWrong, said.join('\n')).toBe(false);
  expect(unclean, said.join('\n')).toEqual([]);
  expect(reads, said.join('\n')).toBeGreaterThan(100);
  expect(disturbances).toBeGreaterThanOrEqual(DISTURBANCES_MIN);
});
