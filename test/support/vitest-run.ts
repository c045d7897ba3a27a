import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** What V8 made of vitest's own files, which each run loads. */
const NODE_COMPILE_CACHE = resolve('node_modules/.cache/gatehouse/compiled');

/** A folder of test files (`x.case.js`, with vitest's globals) that are run by a vitest of their own. */
export class CaseFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'gatehouse-cases-'));

  /** `settings`: of vitest, beside those that find the files. */
  constructor(settings: object) {
    const common = { globals: true, include: ['*.case.js'], pool: 'forks', isolate: false };
    const text = JSON.stringify({ ...common, ...settings });
    this.write('vitest.config.mjs', `export default { test: ${text} };`);
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.path, name), text);
  }

  /** Exit code and output of a run of the files whose names begin with `name`. */
  run(name: string, ...args: readonly string[]): { status: number | null; output: string } {
    const program = resolve('node_modules/vitest/vitest.mjs');
    const all = [program, 'run', '--root', this.path, name, ...args];
    const { status, stdout, stderr } = spawnSync(process.execPath, all, {
      encoding: 'utf8',
      // Not the environment of the run that this is a part of.
      env: { PATH: process.env['PATH'], NO_COLOR: '1', NODE_COMPILE_CACHE },
    });
    return { status, output: stdout + stderr };
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}
