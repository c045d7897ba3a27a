import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const LINTER = join(ROOT, 'node_modules/oxlint/bin/oxlint');
/** Which finds types by a package of its own; what is asked here needs none. */
const CONFIG = `import config from '${pathToFileURL(join(ROOT, 'oxlint.config.ts')).href}';
export default { ...config, options: { ...config.options, typeAware: false } };
`;

let project: string;

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'gatehouse-lint-'));
  symlinkSync(join(ROOT, 'node_modules'), join(project, 'node_modules'));
  writeFileSync(join(project, 'oxlint.config.ts'), CONFIG);
});

afterEach(() => {
  rmSync(project, { recursive: true });
});

function plant(path: string, text: string): void {
  mkdirSync(dirname(join(project, path)), { recursive: true });
  writeFileSync(join(project, path), text);
}

/** Runs the linter as `npm run check` does, on the planted files. */
function lint(): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [LINTER, 'src'], {
    cwd: project,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  // Where a CI asks for colours it has them, NO_COLOR or not.
  return { status, output: stripVTControlCharacters(stdout + stderr) };
}

test('the linter refuses an import against the table, of types as well, and names the table', () => {
  plant('src/model/name.ts', 'export type Name = string;\n');
  plant(
    'src/shared/label.ts',
    "import type { Name } from '../model/name.ts';\n\nexport type Label = Name;\n",
  );
  const { status, output } = lint();
  expect(output).toContain('The import direction is in test/modules.ts.');
  expect(output).toContain('src/shared/label.ts:1');
  expect(output).toContain('Found 0 warnings and 1 error.');
  expect(status).toBe(1);
});

test('the linter refuses an import of a parent room by a re-export', () => {
  plant('src/engine/check.ts', 'export const depth = 1;\n');
  plant('src/engine/hot/up.ts', "export { depth } from '../check.ts';\n");
  const { status, output } = lint();
  expect(output).toContain('src/engine/hot/up.ts:1');
  expect(output).toContain('Found 0 warnings and 1 error.');
  expect(status).toBe(1);
});

test('the linter admits an import that the table admits', () => {
  plant('src/shared/label.ts', 'export type Label = string;\n');
  plant(
    'src/model/name.ts',
    "import type { Label } from '../shared/label.ts';\n\nexport type Name = Label;\n",
  );
  plant(
    'src/cache/entry.ts',
    "import type { Name } from '../model/name.ts';\n\nexport type Entry = Name;\n",
  );
  expect(lint()).toEqual({ status: 0, output: expect.stringContaining('on 3 files') as string });
});
