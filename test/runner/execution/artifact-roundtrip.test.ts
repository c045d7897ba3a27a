import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { zipSync } from 'fflate';
import { expect, test } from 'vitest';
import { createArtifactStore } from '../../../src/runner/execution/artifacts/artifact-store.ts';
import { extractZip } from '../../../src/runner/execution/artifacts/extract-zip.ts';
import { temporaryDir } from '../../support/job-harness.ts';

const name = fc
  .string({ unit: fc.constantFrom('a', 'B', 'ü', ' ', '.', '-', '日'), minLength: 1, maxLength: 6 })
  .filter((text) => text !== '.' && text !== '..');
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const contents = fc.uint8Array({ maxLength: 2_000 });

/** No path is a folder of another one. */
function isTree(paths: readonly string[]): boolean {
  return paths.every((one) =>
    paths.every((other) => one === other || !other.startsWith(`${one}/`)),
  );
}

test('whatever files go in come out', async () => {
  const root = temporaryDir();
  const store = await createArtifactStore(join(root, 'runs'));
  let count = 0;
  await fc.assert(
    fc.asyncProperty(
      fc
        .uniqueArray(fc.tuple(path, contents), {
          minLength: 1,
          maxLength: 8,
          selector: ([key]) => key.toLowerCase(),
        })
        .filter((files) => isTree(files.map(([key]) => key))),
      async (files) => {
        count += 1;
        const dir = join(root, String(count));
        for (const [entry, bytes] of files) {
          mkdirSync(dirname(join(dir, 'in', entry)), { recursive: true });
          writeFileSync(join(dir, 'in', entry), bytes);
        }
        const artifact = await store.add({
          runId: `run${count}`,
          name: 'n',
          files: files.map(([entry]) => ({ source: join(dir, 'in', entry), entry })),
          isOverwriting: false,
        });
        await store.extract(artifact, join(dir, 'out'));
        for (const [entry, bytes] of files) {
          expect(new Uint8Array(readFileSync(join(dir, 'out', entry)))).toEqual(bytes);
        }
        const unpacked = readdirSync(join(dir, 'out'), { recursive: true, withFileTypes: true });
        expect(unpacked.filter((entry) => entry.isFile())).toHaveLength(files.length);
      },
    ),
    { numRuns: 40 },
  );
});

test('whatever an archive calls its entries, nothing appears outside of the folder', async () => {
  const nasty = fc
    .array(fc.constantFrom('..', '.', '', 'a', 'b', 'C:', '\\', '..\\x', '%2e%2e', '~'), {
      minLength: 1,
      maxLength: 5,
    })
    .map((parts) => parts.join('/'))
    .filter((text) => text !== '');
  const root = temporaryDir();
  let count = 0;
  await fc.assert(
    fc.asyncProperty(nasty, async (entry) => {
      count += 1;
      const dir = join(root, String(count));
      mkdirSync(join(dir, 'deep', 'er', 'out'), { recursive: true });
      writeFileSync(join(dir, 'x.zip'), zipSync({ [entry]: new Uint8Array([1]) }));
      // Refused or not: what counts is where files are.
      await extractZip(join(dir, 'x.zip'), join(dir, 'deep', 'er', 'out')).catch((error: unknown) =>
        expect(error).toMatchObject({ name: 'AppError' }),
      );
      expect(readdirSync(dir).sort()).toEqual(['deep', 'x.zip']);
      expect(readdirSync(join(dir, 'deep'))).toEqual(['er']);
      expect(readdirSync(join(dir, 'deep', 'er'))).toEqual(['out']);
    }),
    { numRuns: 100 },
  );
});
