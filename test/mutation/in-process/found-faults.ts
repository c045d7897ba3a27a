import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { Fault } from './plant-faults.ts';

/** `by` are the tests that say so: the one that found it, or all that did not. */
type Found = { readonly status: string; readonly by: readonly string[]; readonly digest: string };
type Kept = { readonly source: string; readonly found: Readonly<Record<string, Found>> };

const DIGEST_CHARS = 16;
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** What tells a fault from the others of its source. */
function keyOf({ location: { start, end }, replacement }: Fault): string {
  return `${start.line}:${start.column}-${end.line}:${end.column} ${replacement}`;
}

/**
 * What became of the faults of one source, in a file: they need not be tried again while the source
 * and the tests that say so stay as they are. What those tests import is not looked at.
 */
export class FoundFaults {
  readonly #path: string;
  readonly #source: string;
  readonly #found = new Map<string, Found>();
  readonly #digests = new Map<string, string>();

  /** `tests` are paths of all that are run. */
  constructor(path: string, source: string, tests: readonly string[]) {
    this.#path = path;
    this.#source = digestOf(source);
    if (!existsSync(path)) return;
    const kept = JSON.parse(readFileSync(path, 'utf8')) as Kept;
    if (kept.source !== this.#source) return;
    for (const [key, found] of Object.entries(kept.found)) {
      // Tests that are new may find what others did not.
      const by = found.status === 'Survived' ? tests : found.by;
      if (this.#digestOf(by) === found.digest) this.#found.set(key, found);
    }
  }

  /** 'Killed', 'Timeout' or 'Survived', or undefined where it has to be tried. */
  statusOf(fault: Fault): string | undefined {
    return this.#found.get(keyOf(fault))?.status;
  }

  /** `by` are paths of tests; none: it hung, or did not even load. */
  add(fault: Fault, status: string, by: readonly string[]): void {
    this.#found.set(keyOf(fault), { status, by, digest: this.#digestOf(by) });
    if (this.#found.size % 20 === 0) this.save();
  }

  save(): void {
    const kept: Kept = { source: this.#source, found: Object.fromEntries(this.#found) };
    writeFileSync(this.#path, JSON.stringify(kept));
  }

  #digestOf(paths: readonly string[]): string {
    return paths.map((path) => this.#digestOfFile(path)).join('');
  }

  #digestOfFile(path: string): string {
    let digest = this.#digests.get(path);
    if (digest === undefined) {
      digest = existsSync(path) ? digestOf(readFileSync(path, 'utf8')).slice(0, DIGEST_CHARS) : '';
      this.#digests.set(path, digest);
    }
    return digest;
  }
}
