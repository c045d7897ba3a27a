/**
 * The public names of @gatehouse/engine as text, of its declarations in dist/engine. `node scripts/pack/engine-api.ts` packs it and
 * compares with clients/engine/api.txt; with --write it writes that file.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packEngine } from './pack-engine.ts';
import { ROOT } from './stage.ts';

const REPORT = join(ROOT, 'clients/engine/api.txt');

/** Reads the declarations of the package in a folder, without comments and imports. */
export function engineApi(folder: string): string {
  const declarations = join(folder, 'dist');
  const names = globSync('**/*.d.ts', { cwd: declarations }).toSorted();
  const parts = names.map((name) => {
    const text = readFileSync(join(declarations, name), 'utf8')
      .replaceAll(/[ ]*\/\*\*[^]*?\*\/\n?/g, '')
      .replaceAll(/^import [^;]*;\n/gm, '')
      .replaceAll(/^\s*\n/gm, '')
      .replaceAll(/^ +(?=\n|$)/gm, '');
    return `// ${name}\n${text}`;
  });
  return parts.join('\n');
}

/** Reads the report that is committed. */
export function recordedApi(): string {
  return readFileSync(REPORT, 'utf8');
}

if (import.meta.main) {
  packEngine(join(ROOT, 'dist'));
  const api = engineApi(join(ROOT, 'dist/engine'));
  if (process.argv.includes('--write')) writeFileSync(REPORT, api);
  else if (recordedApi() !== api) {
    process.stderr.write(
      'clients/engine/api.txt is out of date: node scripts/pack/engine-api.ts --write\n',
    );
    process.exitCode = 1;
  }
}
