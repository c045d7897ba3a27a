import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const RUNS_ALONE = 3;
const LONG_NAME = /\.long\.(?:pg\.|host\.)?test\.ts$/;
const VITEST = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const REPORTER = fileURLToPath(new URL('cpu-reporter.ts', import.meta.url));

/** CPU seconds of one test file, its worker's and those of the worker's children. */
export type FileCost = { readonly file: string; readonly cpuSeconds: number };

/**
 * The short files that are above `secondsMax` in each of up to four runs, all but the first of the file alone. O(three runs of each file over the bound). Gives
 * the least, since what else runs only adds to the cost of a file: shared cores and caches make the same work up to a third dearer.
 * @param secondsMax CPU, not time: other programs of the machine make files far slower than dear.
 * @param root the folder that paths of files start from.
 */
export async function overCpuBound(
  costs: readonly FileCost[],
  secondsMax: number,
  root: string,
): Promise<readonly FileCost[]> {
  const over: FileCost[] = [];
  for (const { file, cpuSeconds } of costs) {
    if (cpuSeconds <= secondsMax || LONG_NAME.test(file)) continue;
    let least = cpuSeconds;
    for (let run = 0; run < RUNS_ALONE && least > secondsMax; run++) {
      least = Math.min(least, await measured(file, root, cpuSeconds));
    }
    if (least > secondsMax) over.push({ file, cpuSeconds: least });
  }
  return over;
}

/** `otherwise` where the run fails or says nothing. */
async function measured(file: string, root: string, otherwise: number): Promise<number> {
  const args = [VITEST, 'run', '--root', root, '--reporter', REPORTER, file];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
    const line = stdout.split('\n').findLast((text) => text.startsWith('{"'));
    const rows = line === undefined ? {} : (JSON.parse(line) as Record<string, number>);
    return rows[file] ?? otherwise;
  } catch (error) {
    if (error instanceof Error) return otherwise;
    throw error;
  }
}
