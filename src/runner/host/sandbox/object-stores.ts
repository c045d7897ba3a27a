import { isAbsolute, join, resolve } from 'node:path';
import { readSmall } from './small-file.ts';

/** Git itself follows 5 in a row; more stores than this are a circle or a mistake. */
const STORES_MAX = 64;

/**
 * The folders of objects that a repository reads from: its own, and those it borrows from, near and far.
 * A git directory that names all of them depends on no depth of a chain, and on no relative path in it.
 * Format: gitrepository-layout(5), `objects/info/alternates`. Cost: one small file a store.
 */
export function objectStores(commonDir: string): readonly string[] {
  const found: string[] = [join(commonDir, 'objects')];
  for (let index = 0; index < found.length && found.length < STORES_MAX; index++) {
    const store = found[index] ?? '';
    const text = readSmall(join(store, 'info', 'alternates'))?.toString('utf8') ?? '';
    for (const line of text.split('\n')) {
      if (line === '' || line.startsWith('#')) continue;
      const path = unquoted(line);
      const absolute = isAbsolute(path) ? path : resolve(store, path);
      if (!found.includes(absolute)) found.push(absolute);
    }
  }
  return found.slice(0, STORES_MAX);
}

/** The content of `objects/info/alternates` for these folders. */
export function alternatesText(stores: readonly string[]): string {
  return stores.map((store) => `${quoted(store)}\n`).join('');
}

function quoted(path: string): string {
  if (!/^["#]|[\n\r]/.test(path)) return path;
  const inner = path.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return `"${inner.replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** As quote.c of git writes a path; bytes beyond ASCII as octal numbers. */
function unquoted(line: string): string {
  if (!line.startsWith('"') || !line.endsWith('"') || line.length < 2) return line;
  const bytes = Buffer.from(line.slice(1, -1), 'utf8').toString('latin1');
  const plain = bytes.replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
    code.length === 3 ? String.fromCodePoint(Number.parseInt(code, 8)) : (ESCAPES[code] ?? code),
  );
  return Buffer.from(plain, 'latin1').toString('utf8');
}
