import { join } from 'node:path';
import type { ProblemReporter } from '../model/ports.ts';
import { openJsonlFile } from '../storage/jsonl-file.ts';
import { objectOf } from './cache-entry.ts';

/** One line of `audit.jsonl`; never holds a secret or a payload. */
export type SyncAuditRecord = {
  readonly at: string;
  readonly kind: 'pull' | 'push' | 'webhook' | 'config';
  readonly event?: string | undefined;
  readonly deliveryId?: string | undefined;
  readonly result: 'ok' | 'partial' | 'duplicate' | 'rejected' | 'failed';
  readonly detail: string;
};

export type SyncAuditQuery = {
  readonly limit?: number | undefined;
  /** ISO 8601. */
  readonly since?: string | undefined;
  readonly kind?: string | undefined;
};

const ROTATE_BYTES = 8 * 1024 * 1024;
const KEEP_FILES = 2;
const LIMIT_DEFAULT = 1000;
const DETAIL_CHARS_MAX = 500;

/** What was synchronized, when, and how it went. */
export interface SyncAudit {
  /** Never rejects: what cannot be written is reported. */
  record(record: Omit<SyncAuditRecord, 'at'>, nowMs: number): Promise<void>;
  /** Newest first, 1,000 unless a limit is given. */
  query(query: SyncAuditQuery): Promise<readonly SyncAuditRecord[]>;
  close(): Promise<void>;
}

/** Opens `audit.jsonl` in `directory`; of the newest 24 MiB nothing is lost. */
export async function openSyncAudit(
  directory: string,
  report: ProblemReporter,
): Promise<SyncAudit> {
  const file = await openJsonlFile({
    path: join(directory, 'audit.jsonl'),
    rotateBytes: ROTATE_BYTES,
    keepFiles: KEEP_FILES,
    report,
  });
  return {
    async record(record, nowMs) {
      const detail = record.detail.slice(0, DETAIL_CHARS_MAX);
      try {
        await file.append({ at: new Date(nowMs).toISOString(), ...record, detail });
      } catch (error) {
        report('sync.audit_failed', error as Error);
      }
    },
    async query({ limit = LIMIT_DEFAULT, since, kind }) {
      const found: SyncAuditRecord[] = [];
      if (limit === 0) return found;
      for await (const line of file.newestFirst()) {
        const record = objectOf(line);
        if (typeof record?.['at'] !== 'string') continue;
        if (since !== undefined && record['at'] < since) break;
        if (kind !== undefined && record['kind'] !== kind) continue;
        found.push(record as SyncAuditRecord);
        if (found.length === limit) break;
      }
      return found;
    },
    close: () => file.close(),
  };
}
