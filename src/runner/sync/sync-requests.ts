import { AppError } from '../../shared/app-error.ts';
import { objectOf, SYNC_KINDS, type SyncKind } from './cache-entry.ts';

/** Body of POST /api/sync/github. */
export type PullRequest = {
  /** Forget cursors, read everything again. */
  readonly isFull: boolean;
  /** Of the mirrors that are on, only these; undefined: all. */
  readonly only: readonly SyncKind[] | undefined;
};

/** Body of POST /api/sync/pr. */
export type PushRequest = {
  readonly title: string | undefined;
  readonly body: string | undefined;
  readonly base: string;
  readonly head: string;
  readonly hasHead: boolean;
  readonly branches: readonly string[] | undefined;
  readonly prefix: string;
  readonly isDraft: boolean;
  readonly isDryRun: boolean;
};

const TEXT_CHARS_MAX = 60_000;
const TITLE_CHARS_MAX = 256;
const NAME_CHARS_MAX = 200;
const BRANCHES_MAX = 100;
/** As part of a branch's name; an empty one would claim every branch of the host. */
const PREFIX = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,99}$/;

/** Errors: INVALID_REQUEST, metadata.field. */
export function parsePullRequest(body: unknown): PullRequest {
  const fields = fieldsOf(body, ['full', 'only']);
  const only = listOf(fields, 'only', SYNC_KINDS.length);
  if (only?.every(isKind) === false) throw invalid('only', `may hold ${SYNC_KINDS.join(', ')}`);
  return { isFull: booleanOf(fields, 'full', false), only: only?.filter(isKind) };
}

/** Errors: INVALID_REQUEST, metadata.field. Names of branches are judged by git later. */
export function parsePushRequest(body: unknown): PushRequest {
  const known = ['title', 'body', 'base', 'head', 'branches', 'prefix', 'draft', 'dryRun'];
  const fields = fieldsOf(body, known);
  const branches = listOf(fields, 'branches', BRANCHES_MAX);
  const head = stringOf(fields, 'head', NAME_CHARS_MAX);
  if (branches !== undefined && head !== undefined) {
    throw invalid('head', 'and branches exclude each other');
  }
  if (branches?.length === 0) throw invalid('branches', 'must not be empty');
  if (branches !== undefined && new Set(branches).size < branches.length) {
    throw invalid('branches', 'must not name a branch twice');
  }
  const prefix = stringOf(fields, 'prefix', NAME_CHARS_MAX) ?? 'runner/';
  if (!PREFIX.test(prefix)) throw invalid('prefix', 'must begin like the name of a branch');
  return {
    title: stringOf(fields, 'title', TITLE_CHARS_MAX),
    body: stringOf(fields, 'body', TEXT_CHARS_MAX),
    base: stringOf(fields, 'base', NAME_CHARS_MAX) ?? 'main',
    head: head ?? 'HEAD',
    hasHead: head !== undefined,
    branches,
    prefix,
    isDraft: booleanOf(fields, 'draft', true),
    isDryRun: booleanOf(fields, 'dryRun', false),
  };
}

function isKind(value: string): value is SyncKind {
  return SYNC_KINDS.some((kind) => kind === value);
}

type RequestFields = Readonly<Record<string, unknown>>;

function fieldsOf(body: unknown, known: readonly string[]): RequestFields {
  // No body at all asks for the defaults.
  const fields = objectOf(body ?? {});
  if (fields === undefined) throw invalid('', 'must be an object');
  const unknown = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalid(unknown.slice(0, 100), 'is not known');
  return fields;
}

function booleanOf(fields: RequestFields, name: string, fallback: boolean): boolean {
  const value = fields[name] ?? fallback;
  if (typeof value !== 'boolean') throw invalid(name, 'must be true or false');
  return value;
}

function stringOf(fields: RequestFields, name: string, charsMax: number): string | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || value === '' || value.length > charsMax) {
    throw invalid(name, `must be a string of 1 to ${charsMax} characters`);
  }
  return value;
}

function listOf(
  fields: RequestFields,
  name: string,
  lengthMax: number,
): readonly string[] | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw invalid(name, 'must be a list of strings');
  const items: readonly unknown[] = value;
  if (!items.every((item) => typeof item === 'string')) {
    throw invalid(name, 'must be a list of strings');
  }
  if (items.length > lengthMax) throw invalid(name, `holds at most ${lengthMax}`);
  return items;
}

function invalid(field: string, problem: string): AppError {
  const text = `${field === '' ? 'the body' : field} ${problem}`;
  return new AppError('INVALID_REQUEST', text, { field });
}
