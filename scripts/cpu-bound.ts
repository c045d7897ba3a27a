import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const LONG_NAME = /\.long\.(?:pg\.|host\.)?test\.ts$/;
const VITEST = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const REPORTER = fileURLToPath(new URL('cpu-reporter.ts', import.meta.url));

/** CPU seconds of one test file, its worker's and those of the worker's children. */
export type FileCost = { readonly file: string; readonly cpuSeconds: number };

/** What a short file may take of CPU: `secondsMax` on a quiet machine, and `shareMax` of the whole run where that is more. */
export type CpuBound = { readonly secondsMax: number; readonly shareMax: number };

/** The bound in seconds for a run of these files. A slow or busy machine makes every file dearer, and so the run. */
export function boundSeconds(
  costs: readonly FileCost[],
  { secondsMax, shareMax }: CpuBound,
): number {
  const sum = costs.reduce((total, { cpuSeconds }) => total + cpuSeconds, 0);
  return Math.max(secondsMax, shareMax * sum);
}

/**
 * The short files that are above `secondsMax` twice; the second run is of the file alone. O(a run of each file over the bound). Gives the lesser of both, since
 * what else runs only adds to the cost of a file: shared cores and caches make the same work up to a third dearer.
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
    const lesser = Math.min(cpuSeconds, await measured(file, root, cpuSeconds));
    if (lesser > secondsMax) over.push({ file, cpuSeconds: lesser });
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
