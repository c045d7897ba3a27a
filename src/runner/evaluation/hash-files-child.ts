import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { create } from '@actions/glob';
import { AppError } from '../../shared/app-error.ts';
import { openWithin } from '../storage/contained-file.ts';

// A program of its own: the package looks from the working folder, and hashing must not hold up the
// process that asks. The answer is the last line of stderr. The package hashes what links lead to
// wherever that is; here it counts only within the folder.
const [root = '', patterns = '', follow = ''] = process.argv.slice(2);
process.chdir(root);
const globber = await create(patterns, { followSymbolicLinks: follow === 'follow' });
const whole = createHash('sha256');
let hasMatch = false;
for await (const path of globber.globGenerator()) {
  const digest = path.startsWith(root + sep) ? await digestOf(path) : undefined;
  if (digest === undefined) continue;
  hasMatch = true;
  whole.update(digest);
}
process.stderr.write(`\nhash=${hasMatch ? whole.digest('hex') : ''}\n`);

/** Undefined for folders, and for what lies elsewhere or is no file. */
async function digestOf(path: string): Promise<Buffer | undefined> {
  if (lstatSync(path).isDirectory()) return undefined;
  try {
    const file = await openWithin(path, [root]);
    const hash = createHash('sha256');
    await pipeline(file.createReadStream(), hash);
    return hash.digest();
  } catch (error) {
    if (error instanceof AppError && error.reason === 'INVALID_VALUE') return undefined;
    throw error;
  }
}
