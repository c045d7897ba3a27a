import { AppError } from '../../shared/app-error.ts';
import { objectOf } from './cache-entry.ts';
import type { HostAnswer } from './host-answer.ts';
import type { HostClient } from './host-client.ts';

/** More pages than any list that fits a cache has. */
const PAGES_MAX = 1000;

/** What is kept of a page, so that the next pull costs a 304, which the rate limit does not count. */
type PageNote = {
  readonly etag: string;
  /** Address of the following page; a 304 does not repeat it. */
  readonly next?: string | undefined;
  /** Keys of the entries that stood on the page. */
  readonly keys: readonly string[];
};

export type RememberedPage = {
  /** Undefined: as it was when `keys` were read. */
  readonly items: readonly unknown[] | undefined;
  readonly keys: readonly string[];
};

export type PageList = {
  readonly pages: readonly RememberedPage[];
  readonly isNotModified: boolean;
  /** The `Date` of the first answer, in milliseconds; undefined when the host says none. */
  readonly hostTimeMs: number | undefined;
  /** To be kept until the next pull. */
  readonly notes: Readonly<Record<string, PageNote>>;
};

/**
 * All pages of a list, from `firstPath` on by the Link header (RFC 8288), each asked for with the ETag
 * that `notes` remember of it. `keysOf` names the entries of a page.
 * Errors: as HostClient.send; UPSTREAM_ERROR for a page that is no list or a list without an end.
 */
export async function fetchPages(
  client: HostClient,
  firstPath: string,
  notes: Readonly<Record<string, unknown>>,
  keysOf: (items: readonly unknown[]) => readonly string[],
): Promise<PageList> {
  const pages: RememberedPage[] = [];
  const newNotes: Record<string, PageNote> = {};
  let hostTimeMs: number | undefined;
  let path: string | undefined = firstPath;
  while (path !== undefined) {
    if (pages.length === PAGES_MAX || newNotes[path] !== undefined) {
      throw new AppError('UPSTREAM_ERROR', 'the code host answered with a list without an end');
    }
    const known = noteOf(notes[path]);
    const answer = await client.send({ method: 'GET', path, etag: known?.etag });
    hostTimeMs ??= dateOf(answer);
    const note: PageNote =
      answer.status === 304 && known !== undefined ? known : noteOfAnswer(answer, keysOf);
    const items = answer.status === 304 ? undefined : listOf(answer);
    pages.push({ items, keys: note.keys });
    newNotes[path] = note;
    path = note.next;
  }
  return {
    pages,
    isNotModified: pages.every(({ items }) => items === undefined),
    hostTimeMs,
    // Without an ETag there is nothing to ask with.
    notes: Object.fromEntries(Object.entries(newNotes).filter(([, { etag }]) => etag !== '')),
  };
}

/** The address that a Link header gives the relation `next`. */
export function nextOfLink(header: string | null): string | undefined {
  for (const [, target = '', parameters = ''] of (header ?? '').matchAll(
    /<([^<>]*)>((?:\s*;\s*[\w-]+="?[^",;<>]*"?)*)/g,
  )) {
    if (/;\s*rel="?(?:[^";]*\s)?next(?:\s[^";]*)?"?\s*(?:;|$)/i.test(parameters)) return target;
  }
  return undefined;
}

function noteOfAnswer(
  answer: HostAnswer,
  keysOf: (items: readonly unknown[]) => readonly string[],
): PageNote {
  return {
    etag: answer.headers.get('etag') ?? '',
    next: nextOfLink(answer.headers.get('link')),
    keys: keysOf(listOf(answer)),
  };
}

function listOf(answer: HostAnswer): readonly unknown[] {
  if (Array.isArray(answer.json)) return answer.json;
  throw new AppError('UPSTREAM_ERROR', 'the code host answered with something else than a list');
}

function dateOf(answer: HostAnswer): number | undefined {
  const ms = Date.parse(answer.headers.get('date') ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}

function noteOf(value: unknown): PageNote | undefined {
  const { etag, next, keys } = (objectOf(value) ?? {}) as Partial<Record<keyof PageNote, unknown>>;
  if (typeof etag !== 'string' || !Array.isArray(keys)) return undefined;
  if (!keys.every((key) => typeof key === 'string')) return undefined;
  return { etag, keys, ...(typeof next === 'string' ? { next } : {}) };
}
