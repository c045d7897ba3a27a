import { readdir, realpath } from 'node:fs/promises';
import { join, posix, relative, sep } from 'node:path';
import { isWithin } from '../../storage/contained-file.ts';

/** Nothing is unpacked there by a name of the workspace, and both may be large. */
const SKIPPED: ReadonlySet<string> = new Set(['.git', '.runner']);

/**
 * Links below `folder` that lead out of it, or nowhere, by their names relative to it. Links are not
 * followed. Cost: a listing of each folder.
 */
export async function outwardLinks(folder: string): Promise<readonly string[]> {
  const root = await realpath(folder);
  const found: string[] = [];
  const waiting = [root];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const entry of await readdir(at, { withFileTypes: true })) {
      const path = join(at, entry.name);
      if (entry.isDirectory() && !(at === root && SKIPPED.has(entry.name))) waiting.push(path);
      if (entry.isSymbolicLink() && !(await staysWithin(root, path))) {
        found.push(relative(root, path).split(sep).join(posix.sep));
      }
    }
  }
  return found;
}

async function staysWithin(root: string, link: string): Promise<boolean> {
  const real = await realpath(link).catch(() => undefined);
  return real !== undefined && isWithin(root, real);
}

/**
 * The first name of a listing (as tar prints it, one a line, odd characters escaped) that goes up, or
 * through one of `links`; undefined when none does. Absolute names are as they are.
 */
export function nameLeadingOut(listing: string, links: readonly string[]): string | undefined {
  const outward = new Set(links);
  return listing
    .split('\n')
    .map(unescaped)
    .find((name) => {
      if (posix.isAbsolute(name)) return false;
      const parts = posix.normalize(name).replace(/\/$/, '').split('/');
      if (parts[0] === '..') return true;
      return parts.some(
        (_, index) => index + 1 < parts.length && outward.has(parts.slice(0, index + 1).join('/')),
      );
    });
}

/** Of both GNU's and BSD's tar: octal bytes, and letters as in C. */
function unescaped(line: string): string {
  if (!line.includes('\\')) return line;
  const letters: Readonly<Record<string, string>> = {
    n: '\n',
    t: '\t',
    r: '\r',
    b: '\b',
    f: '\f',
    a: '\u0007',
    v: '\v',
  };
  const bytes: Buffer[] = [];
  for (const [whole, octal, letter, plain] of line.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gsu)) {
    if (octal !== undefined) bytes.push(Buffer.from([Number.parseInt(octal, 8)]));
    else if (letter !== undefined) bytes.push(Buffer.from(letters[letter] ?? letter));
    else bytes.push(Buffer.from(plain ?? whole));
  }
  return Buffer.concat(bytes).toString('utf8');
}
