/** Fails when src/gen is not exactly what the proto files generate. */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const GENERATED = 'src/gen';

/** Every file below `directory`, by its path there. */
function readTree(directory: string): ReadonlyMap<string, string> {
  const paths = globSync('**/*.ts', { cwd: directory });
  return new Map(paths.map((path) => [path, readFileSync(join(directory, path), 'utf8')]));
}

const scratch = mkdtempSync(join(tmpdir(), 'gatehouse-gen-'));
try {
  const { status } = spawnSync('buf', ['generate', '--output', scratch], { stdio: 'inherit' });
  if (status !== 0) throw new Error('buf generate failed');
  const fresh = readTree(join(scratch, GENERATED));
  const committed = readTree(GENERATED);
  if (fresh.size === 0) throw new Error('nothing was generated: the check itself is broken');
  const paths = [...new Set([...fresh.keys(), ...committed.keys()])].toSorted();
  const different = paths.filter((path) => fresh.get(path) !== committed.get(path));
  if (different.length > 0) {
    console.error(`Out of date (npm run generate): ${different.join(', ')}`);
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true });
}
