import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkHistory, isClean } from '../../verify/checker/check-history.ts';
import { loadRun, saveRun } from '../../verify/checker/history-file.ts';
import { verify } from '../../verify/verify.ts';

/* A short run of `npm run verify`: docs/consistency.md says what a whole one is. */

test('two instances under load and disturbances answer as one', { timeout: 180_000 }, async () => {
  const out = mkdtempSync(join(tmpdir(), 'gatehouse-verify-test-'));
  onTestFinished(() => rmSync(out, { recursive: true, force: true }));
  const said: string[] = [];
  const saved: string[] = [];
  const ending = new AbortController();
  const outcome = await verify({
    signal: ending.signal,
    seed: process.env['SEED'] ?? `${Date.now() % 1_000_000}`,
    seconds: 12,
    roundSeconds: 12,
    instances: 2,
    faults: [
      'restart',
      'cut-commits',
      'lost-answers',
      'lost-notifications',
      'short-pause',
      'alone',
    ],
    tree: process.cwd(),
    target: [],
    token: '',
    adminSecret: '',
    say: (text) => said.push(text),
    save: (name, run) => {
      const path = join(out, `${name}.jsonl.gz`);
      saveRun(path, run);
      saved.push(path);
      return path;
    },
  });
  // Nobody listens any more: what comes of it would be an unhandled rejection.
  ending.abort();
  expect(outcome.isWrong, said.join('\n')).toBe(false);
  // What a machine that is busy with other tests gets done may be too little to prove anything: no fault of the product.
  const [path = ''] = saved;
  const { history } = loadRun(path);
  const again = checkHistory(history);
  expect(isClean(again), said.join('\n')).toBe(true);
  expect(again.coverage.reads, said.join('\n')).toBeGreaterThan(100);
  expect(history.disturbances.length).toBeGreaterThan(1);
});
