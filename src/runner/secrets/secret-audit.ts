import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { openJsonlFile, type JsonlFile } from '../storage/jsonl-file.ts';
import { ACTOR_TEXT_LENGTH_MAX, AUDIT_QUERY_DEFAULT, AUDIT_QUERY_MAX } from './secret-limits.ts';

export type SecretAction = 'set' | 'delete' | 'import' | 'sync' | 'read' | 'denied';

/** Who asked, as far as HTTP says; all absent for a job. */
export type SecretActor = {
  readonly ip?: string | undefined;
  readonly origin?: string | undefined;
  readonly userAgent?: string | undefined;
};

export type SecretAuditEvent = {
  readonly action: SecretAction;
  /** '' for what concerns no single secret. */
  readonly name: string;
  readonly environment: string;
  readonly backend: string;
  readonly actor?: SecretActor | undefined;
  readonly runId?: string | undefined;
  readonly jobId?: string | undefined;
  /** `created`, `updated`…, or the reason of a refusal in lower case. */
  readonly result: string;
  readonly fingerprint?: string | undefined;
};

/** A line of the audit as it is kept and shown. `hash` covers `prevHash` and everything before it. */
export type SecretAuditRecord = SecretAuditEvent & {
  readonly seq: number;
  /** ISO 8601. */
  readonly at: string;
  readonly prevHash: string;
  readonly hash: string;
};

export type SecretAuditQuery = {
  /** Default 100, at most 1,000. */
  readonly limit?: number | undefined;
  /** ISO 8601: only records of this time or later. */
  readonly since?: string | undefined;
  readonly name?: string | undefined;
};

const FILE_NAME = 'secrets-audit.jsonl';
/** With the one that is written eight files, about 300,000 records: the check at the start takes some seconds. */
const ROTATE_BYTES = 16 * 1024 * 1024;
const KEEP_FILES = 7;
const FIRST_HASH = '0'.repeat(64);

/**
 * Who set, deleted, imported, synchronised and read which secret: append-only, each record hashed together
 * with the one before (SHA-256), so that a changed, dropped or inserted line shows. Cutting the end off does not,
 * nor the start once the oldest file was removed: the newest 112 MiB are never removed.
 */
export class SecretAudit {
  readonly #file: JsonlFile;
  readonly #clock: Clock;
  #seq = 0;
  #prevHash = FIRST_HASH;
  #turn: Promise<unknown> = Promise.resolve();
  /** Events of calls that came while a write was under way: they share the next one. */
  #waiting: SecretAuditEvent[] = [];
  #nextTurn: Promise<void> | undefined;
  #verified: Promise<void> = Promise.resolve();
  #isClosing = false;

  private constructor(file: JsonlFile, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
  }

  /**
   * Opens the file and begins to check the chain; a break is reported (`secrets.audit_broken`) and the chain
   * goes on from the last record that can be read. `rotateBytes`: where a file is set aside.
   * Errors: DISK_FULL, STORE_UNAVAILABLE.
   */
  static async open(
    stateDir: string,
    clock: Clock,
    report: ProblemReporter,
    rotateBytes: number = ROTATE_BYTES,
  ): Promise<SecretAudit> {
    const path = join(stateDir, FILE_NAME);
    const file = await openJsonlFile({ path, rotateBytes, keepFiles: KEEP_FILES, report });
    const audit = new SecretAudit(file, clock);
    await audit.#followFile();
    audit.#verified = audit.#verify(report);
    return audit;
  }

  /** Resolves when the chain, as it was at the start, is checked. Cost: 18 us a record, in slices of 256 KiB. */
  get verified(): Promise<void> {
    return this.#verified;
  }

  /**
   * On disk when the promise resolves, in the order of the calls; calls that come together share one write.
   * Errors: DISK_FULL, STORE_UNAVAILABLE.
   */
  async append(events: readonly SecretAuditEvent[]): Promise<void> {
    if (events.length === 0) return;
    this.#waiting.push(...events);
    this.#nextTurn ??= this.#takeTurn();
    await this.#nextTurn;
  }

  #takeTurn(): Promise<void> {
    const turn = this.#turn.then(() => {
      const events = this.#waiting;
      this.#waiting = [];
      this.#nextTurn = undefined;
      return this.#append(events);
    });
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #verify(report: ProblemReporter): Promise<void> {
    let last: SecretAuditRecord | undefined;
    try {
      const hasStart = !(await this.#file.mayHaveDropped());
      for await (const value of this.#file.oldestFirst()) {
        if (this.#isClosing) return;
        const record = asRecord(value);
        const problem = chainProblem(record, last, hasStart);
        if (problem !== undefined) {
          throw new AppError('STORE_UNAVAILABLE', `the audit of secrets was changed: ${problem}`);
        }
        last = record;
      }
    } catch (error) {
      report('secrets.audit_broken', error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Newest first. Errors: INVALID_REQUEST with metadata.field. Cost: reads the file backwards until the limit is reached. */
  async query(query: SecretAuditQuery): Promise<readonly SecretAuditRecord[]> {
    const limit = query.limit ?? AUDIT_QUERY_DEFAULT;
    if (!Number.isInteger(limit) || limit < 1 || limit > AUDIT_QUERY_MAX) {
      throw invalid('limit', `is a whole number from 1 to ${AUDIT_QUERY_MAX}`);
    }
    const sinceMs = query.since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(query.since);
    if (Number.isNaN(sinceMs)) throw invalid('since', 'is a time in ISO 8601');
    const name = query.name?.toUpperCase();
    const found: SecretAuditRecord[] = [];
    for await (const value of this.#file.newestFirst()) {
      const record = asRecord(value);
      // Not the end of the search: a clock that was set back puts older times after newer ones.
      if (record === undefined || Date.parse(record.at) < sinceMs) continue;
      if (name !== undefined && record.name !== name) continue;
      found.push(record);
      if (found.length === limit) break;
    }
    return found;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([this.#turn, this.#verified]);
    await this.#file.close();
  }

  async #append(events: readonly SecretAuditEvent[]): Promise<void> {
    const results = await Promise.allSettled(
      events.map((event) => {
        const record = this.#recordOf(event);
        this.#seq = record.seq;
        this.#prevHash = record.hash;
        return this.#file.append(record);
      }),
    );
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return;
    await this.#followFile();
    throw failed.reason;
  }

  /** At the start, and after a failed write, only the file knows what the next record follows. */
  async #followFile(): Promise<void> {
    this.#seq = 0;
    this.#prevHash = FIRST_HASH;
    for await (const value of this.#file.newestFirst()) {
      const record = asRecord(value);
      if (record === undefined) continue;
      this.#seq = record.seq;
      this.#prevHash = record.hash;
      return;
    }
  }

  #recordOf(event: SecretAuditEvent): SecretAuditRecord {
    const content = {
      seq: this.#seq + 1,
      at: new Date(this.#clock.nowMs()).toISOString(),
      ...event,
      actor: actorOf(event.actor),
      prevHash: this.#prevHash,
    };
    return { ...content, hash: hashOf(content) };
  }
}

/** What is wrong between two neighbours; undefined when nothing is. Without its start a chain begins anywhere. */
function chainProblem(
  record: SecretAuditRecord | undefined,
  last: SecretAuditRecord | undefined,
  hasStart: boolean,
): string | undefined {
  if (record === undefined) return `a record after number ${last?.seq ?? 0} has another form`;
  const { hash, ...content } = record;
  if (hashOf(content) !== hash) return `record ${record.seq} does not fit its hash`;
  if (last === undefined && !hasStart) return undefined;
  const expected = last?.hash ?? FIRST_HASH;
  if (record.prevHash !== expected || record.seq !== (last?.seq ?? 0) + 1) {
    return `record ${record.seq} does not follow number ${last?.seq ?? 0}`;
  }
  return undefined;
}

function hashOf(content: Omit<SecretAuditRecord, 'hash'>): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}

function asRecord(value: unknown): SecretAuditRecord | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const record = value as Partial<Record<keyof SecretAuditRecord, unknown>>;
  return typeof record.seq === 'number' &&
    typeof record.at === 'string' &&
    typeof record.name === 'string' &&
    typeof record.prevHash === 'string' &&
    typeof record.hash === 'string'
    ? (value as SecretAuditRecord)
    : undefined;
}

/** Texts of a stranger: of bounded length. */
function actorOf(actor: SecretActor | undefined): SecretActor {
  const cut = (text: string | undefined): string | undefined =>
    text?.slice(0, ACTOR_TEXT_LENGTH_MAX).toWellFormed();
  return { ip: cut(actor?.ip), origin: cut(actor?.origin), userAgent: cut(actor?.userAgent) };
}

function invalid(field: string, problem: string): AppError {
  return new AppError('INVALID_REQUEST', `${field} ${problem}`, { field });
}
