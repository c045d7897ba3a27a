import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../shared/assert.ts';

/** One .sql file of migrations, as its header describes it. */
export type MigrationFile = {
  /** Without `.sql`; begins with four digits, by which files are ordered. */
  readonly name: string;
  readonly path: string;
  /**
   * The oldest release that may run while this migration is applied, named by the newest migration
   * that it knows. The file's own name: none that does not know it.
   */
  readonly runsBeside: string;
  /** The index that the file builds concurrently, outside of any transaction; undefined: a usual file. */
  readonly concurrentIndex: string | undefined;
  /** Files that this one replaces, in order; none of them is kept. */
  readonly replaces: readonly string[];
};

const NAME = /^\d{4}_[a-z0-9_]+$/;
const RUNS_BESIDE = /^-- Runs beside: (\S+)$/m;
const REPLACES = /^-- Replaces: (\S+)$/gm;
const CONCURRENTLY = /^-- Concurrently: (\S+)$/m;

/**
 * The migrations of a directory (not of those below), in order. The header of a file is its leading
 * comment lines; of these `-- Runs beside: NAME`, `-- Concurrently: INDEX` and `-- Replaces: NAME` are read.
 * Errors: throws for a header that cannot be true, which a test finds. Cost: reads every file.
 */
export function readMigrationFiles(directory: string): readonly MigrationFile[] {
  const names = readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .toSorted();
  return names.map((name) => {
    assert(NAME.test(name), 'a migration is called NNNN_name');
    const path = join(directory, `${name}.sql`);
    const header = /^(?:--.*\n)*/.exec(readFileSync(path, 'utf8'))?.[0] ?? '';
    const runsBeside = RUNS_BESIDE.exec(header)?.[1] ?? name;
    assert(names.includes(runsBeside), 'a release is named by a migration that exists');
    assert(runsBeside <= name, 'a release beside a migration is older than it');
    const replaces = [...header.matchAll(REPLACES)].map(([, replaced]) => replaced ?? '');
    assert(!replaces.some((replaced) => names.includes(replaced)), 'what is replaced is not kept');
    return { name, path, runsBeside, concurrentIndex: CONCURRENTLY.exec(header)?.[1], replaces };
  });
}

/**
 * Whether a release whose newest migration is `newestKnown` may run on a schema with a migration
 * that it does not know. `runsBeside` is null where nothing was recorded.
 */
export function mayRunBeside(newestKnown: string, runsBeside: string | null): boolean {
  return runsBeside !== null && runsBeside <= newestKnown;
}
