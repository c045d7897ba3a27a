import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const LONG_NAME = /\.long\.(?:pg\.|host\.)?test\.ts$/;
const VITEST = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const REPORTER = fileURLToPath(new URL('cpu-reporter.ts', import.meta.url));

/** CPU seconds of one test file, its worker's and those of the worker's children. */
export type FileCost = { readonly file: string; readonly cpuSeconds: number };

/**
 * The short files that take too much: measured once more, alone, they still took more than `secondsMax` on the
 * average of both. O(a run of each file over the bound).
 * @param secondsMax CPU, not time: other programs of the machine make files slow.
 * @param root the folder that paths of files start from.
 */
export function overCpuBound(
  costs: readonly FileCost[],
  secondsMax: number,
  root: string,
): readonly FileCost[] {
  return costs
    .filter(({ file, cpuSeconds }) => cpuSeconds > secondsMax && !LONG_NAME.test(file))
    .map(({ file, cpuSeconds }) => {
      return { file, cpuSeconds: (cpuSeconds + measured(file, root, cpuSeconds)) / 2 };
    })
    .filter(({ cpuSeconds }) => cpuSeconds > secondsMax);
}

/** `otherwise` where the run says nothing. */
function measured(file: string, root: string, otherwise: number): number {
  const args = [VITEST, 'run', '--root', root, '--reporter', REPORTER, file];
  const { stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  const line = stdout.split('\n').findLast((text) => text.startsWith('{"'));
  const rows = line === undefined ? {} : (JSON.parse(line) as Record<string, number>);
  return rows[file] ?? otherwise;
}
