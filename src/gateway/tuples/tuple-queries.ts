import type { RawSubject } from '../../model/raw-tuple.ts';
import { fieldError } from '../../model/reasons.ts';
import type { ExportTuplesRequest } from '../../services/bulk/tuple-export.ts';
import type { RawFilter } from '../../services/bulk/tuple-filter.ts';
import type { WatchTuplesRequest } from '../../services/watch/tuple-watch.ts';
import type { AppError } from '../../shared/app-error.ts';

const FILTER_NAMES = [
  'namespace',
  'object_id',
  'relation',
  'subject_user_id',
  'subject_namespace',
  'subject_object_id',
  'subject_relation',
  'subject_wildcard',
  'subject_wildcard_of',
] as const;
const EXPORT_NAMES = [
  'project_id',
  'tenant_id',
  'all_tenants',
  'written_at',
  ...FILTER_NAMES,
  'at_least_consistency_token',
  'cursor',
] as const;
const WATCH_NAMES = [
  'project_id',
  'tenant_id',
  'all_tenants',
  ...FILTER_NAMES,
  'start_after',
  'heartbeat_seconds',
] as const;
const IMPORT_NAMES = ['project_id', 'tenant_id', 'dry_run', 'import_id'] as const;

/** Parameters of an import by the part of its address behind `?`. */
export type ImportQuery = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly dryRun: boolean;
  readonly importId: string;
};

/** Parameters of an export, and whether each tuple has the time at which it was written. */
export type ExportQuery = ExportTuplesRequest & { readonly hasWrittenAt: boolean };

/** The request of an export from its query string, or the error. */
export function exportRequestOf(query: string): ExportQuery | AppError {
  const read = valuesOf(query, EXPORT_NAMES);
  if (!(read instanceof Map)) return read;
  const text = (name: (typeof EXPORT_NAMES)[number]): string => read.get(name) ?? '';
  const allTenants = flagOf(read, 'all_tenants');
  if (typeof allTenants !== 'boolean') return allTenants;
  const hasWrittenAt = flagOf(read, 'written_at');
  if (typeof hasWrittenAt !== 'boolean') return hasWrittenAt;
  const filter = filterOf(read);
  if ('reason' in filter) return filter;
  return {
    projectId: text('project_id'),
    tenantId: text('tenant_id'),
    allTenants,
    hasWrittenAt,
    filter,
    token: text('at_least_consistency_token'),
    cursor: text('cursor'),
  };
}

/**
 * The request of a watch from its query string, or the error. `lastEventId` is the position of a client that
 * reconnects; it takes precedence over the start.
 */
export function watchRequestOf(query: string, lastEventId: string): WatchTuplesRequest | AppError {
  const read = valuesOf(query, WATCH_NAMES);
  if (!(read instanceof Map)) return read;
  const allTenants = flagOf(read, 'all_tenants');
  if (typeof allTenants !== 'boolean') return allTenants;
  const filter = filterOf(read);
  if ('reason' in filter) return filter;
  const heartbeat = read.get('heartbeat_seconds') ?? '0';
  if (!/^\d{1,4}$/.test(heartbeat)) return fieldError('heartbeat_seconds', 'must be a number');
  return {
    projectId: read.get('project_id') ?? '',
    tenantId: read.get('tenant_id') ?? '',
    allTenants,
    filter,
    startAfter: lastEventId === '' ? (read.get('start_after') ?? '') : lastEventId,
    heartbeatSeconds: Number(heartbeat),
  };
}

/** The options of an import from its query string, or the error. */
export function importRequestOf(query: string): ImportQuery | AppError {
  const read = valuesOf(query, IMPORT_NAMES);
  if (!(read instanceof Map)) return read;
  const dryRun = flagOf(read, 'dry_run');
  if (typeof dryRun !== 'boolean') return dryRun;
  return {
    projectId: read.get('project_id') ?? '',
    tenantId: read.get('tenant_id') ?? '',
    dryRun,
    importId: read.get('import_id') ?? '',
  };
}

function filterOf(read: ReadonlyMap<string, string>): RawFilter | AppError {
  const subject = subjectOf(read);
  if (subject !== undefined && 'reason' in subject) return subject;
  return {
    namespace: read.get('namespace') ?? '',
    objectId: read.get('object_id') ?? '',
    relation: read.get('relation') ?? '',
    subject: subject === undefined ? undefined : { kind: subject },
  };
}

function valuesOf(query: string, names: readonly string[]): Map<string, string> | AppError {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    const shown = name.slice(0, 64);
    if (!names.includes(name)) return fieldError(shown, 'is no parameter of this address');
    if (values.has(name)) return fieldError(shown, 'is there twice');
    values.set(name, value);
  }
  return values;
}

function flagOf(values: ReadonlyMap<string, string>, name: string): boolean | AppError {
  const value = values.get(name) ?? 'false';
  if (value !== 'true' && value !== 'false') return fieldError(name, 'must be true or false');
  return value === 'true';
}

function subjectOf(values: ReadonlyMap<string, string>): RawSubject | AppError | undefined {
  const userId = values.get('subject_user_id');
  const wildcard = values.get('subject_wildcard');
  const wildcardOf = values.get('subject_wildcard_of');
  const set = ['subject_namespace', 'subject_object_id', 'subject_relation'].filter((name) =>
    values.has(name),
  );
  const kinds =
    [userId, wildcard, wildcardOf].filter((value) => value !== undefined).length +
    Number(set.length > 0);
  if (kinds === 0) return undefined;
  if (kinds > 1) return fieldError('subject', 'must be of one kind');
  if (userId !== undefined) return { case: 'userId', value: userId };
  if (wildcardOf !== undefined) return { case: 'wildcardOf', value: wildcardOf };
  if (wildcard !== undefined) {
    if (wildcard !== 'true') return fieldError('subject_wildcard', 'must be true where it is set');
    return { case: 'wildcard', value: true };
  }
  const text = (name: string): string => values.get(name) ?? '';
  return {
    case: 'set',
    value: {
      namespace: text('subject_namespace'),
      objectId: text('subject_object_id'),
      relation: text('subject_relation'),
    },
  };
}
