import { createHash } from 'node:crypto';
import { checkTenantId, checkText, requiredError } from '../../model/names.ts';
import { packChange } from '../../model/packed-changes.ts';
import type { RawUpdate } from '../../model/raw-tuple.ts';
import { type AuthzReason, fieldError } from '../../model/reasons.ts';
import type { ShardKey, TupleChange } from '../../model/relation-tuple.ts';
import { checkUpdatesInSlices } from '../../model/tuple-input.ts';
import { AppError } from '../../shared/app-error.ts';
import { existMatches, type TupleMatch } from '../../store/sql/reads/match-tuples.ts';
import {
  type GuardedShard,
  insertWriteKey,
  selectGuardedShard,
} from '../../store/sql/writes/tuple-write-keys.ts';
import type { WriteMeta } from '../ports.ts';
import { openShard } from '../projects/management-call.ts';
import { certainlyUnknown } from '../tuples/unknown-inserts.ts';
import type { UpdateMode } from '../write-groups/update-modes.ts';
import { certainRefusal } from '../writes/write-rules.ts';
import type { WriteTransaction } from '../writes/write-transaction.ts';
import { type BulkParts, tokenAt } from './bulk-ports.ts';
import { countUndecidable } from './tuple-admission.ts';
import { checkTupleFilter, isEverything, type RawFilter } from './tuple-filter.ts';
import { type ModelsOfWrites, VersionAdmission } from './version-admission.ts';

/** The oneof `Precondition.kind`; undefined where none is set. */
export type RawPrecondition =
  | { readonly case: 'mustExist' | 'mustNotExist'; readonly value: RawFilter }
  | { readonly case: 'unchangedSince'; readonly value: string }
  | { readonly case: undefined; readonly value?: undefined };

export type GuardedWriteRequest = {
  /** '' is the default project. */
  readonly projectId: string;
  readonly tenantId: string;
  readonly updates: readonly RawUpdate[];
  readonly preconditions: readonly { readonly kind: RawPrecondition }[];
  /** One for each update, as the proto enum numbers them; [] if none. */
  readonly modes: readonly number[];
  /** '' if none. */
  readonly idempotencyKey: string;
  /** The version of the model that admits the updates; 0: the rules in force do. */
  readonly modelVersion: bigint;
  readonly meta: WriteMeta;
};

export type GuardedWriteResult = { readonly token: string; readonly isReplayed: boolean };

/** Preconditions of one write at most. */
export const PRECONDITIONS_MAX = 100;
const KEY_CHARACTERS_MAX = 64;

/** Conditions that must hold under the shard's lock. */
type Preconditions = {
  readonly positions: readonly {
    readonly at: number;
    readonly epoch: number;
    readonly revision: number;
  }[];
  readonly matches: readonly {
    readonly at: number;
    readonly mustExist: boolean;
    readonly match: TupleMatch;
  }[];
};

/** A request whose fields are valid. */
type CheckedWrite = Pick<GuardedWriteRequest, 'idempotencyKey' | 'meta' | 'modelVersion'> & {
  readonly shard: ShardKey;
  readonly updates: readonly TupleChange[];
  readonly preconditions: Preconditions;
  readonly options: {
    readonly modes: readonly UpdateMode[] | undefined;
    readonly isByVersion: boolean;
  };
};

/** Writes that depend on what is stored, and writes that may be sent again. */
export class GuardedWrites {
  readonly #parts: BulkParts;
  readonly #updatesMax: number;
  readonly #admission: VersionAdmission;

  /** `updatesMax` is GATEWAY_MAX_WRITE_UPDATES. */
  constructor(parts: BulkParts, models: ModelsOfWrites, updatesMax: number) {
    this.#parts = parts;
    this.#updatesMax = updatesMax;
    this.#admission = new VersionAdmission(parts.rules, models);
  }

  /**
   * WriteTuples. Errors: FIELD_*, NAMESPACE_RESERVED, BATCH_TOO_LARGE, TOKEN_INVALID, PRECONDITION_FAILED and
   * IDEMPOTENCY_KEY_USED (nothing was written), RELATION_UNKNOWN, those of VersionAdmission, of the project and of TupleWrites, of modes among them.
   * Cost: as a write; with a precondition or a key a transaction of its own, five round trips.
   */
  async write(request: GuardedWriteRequest): Promise<GuardedWriteResult> {
    const { settingsSource } = this.#parts;
    const { tenantId, meta } = request;
    checkTenantId('tenant_id', tenantId);
    checkLimits(request);
    const address = { projectId: settingsSource.resolveId(request.projectId), tenantId };
    const updates = await checkUpdatesInSlices(request.updates, address, this.#updatesMax);
    const modes = checkModes(request.modes, updates);
    const preconditions = this.#preconditions(address, request.preconditions);
    const version = checkVersion(request.modelVersion);
    const shard = await openShard(this.#parts, request);
    const isByVersion = version !== 0;
    const write = { ...request, shard, updates, preconditions, options: { modes, isByVersion } };
    if (!isByVersion) return await this.#write(write);
    const run = (): Promise<GuardedWriteResult> => this.#write(write);
    return await this.#admission.admitted(shard, version, updates, meta, run);
  }

  async #write(write: CheckedWrite): Promise<GuardedWriteResult> {
    const { writer, codec } = this.#parts;
    const { shard, updates, preconditions, options, idempotencyKey: key, meta } = write;
    const unknown = options.isByVersion
      ? undefined
      : await certainlyUnknown(this.#parts.rules, shard, updates);
    if (key === '' && isEmpty(preconditions)) {
      if (unknown !== undefined) throw unknown;
      const { epoch, revision } = await writer.write(shard, updates, meta, options);
      countUndecidable(this.#parts, shard, updates);
      return { token: codec.encode(shard, epoch, revision), isReplayed: false };
    }
    const digest = digestOf(
      updates.map(packChange),
      preconditions,
      options.modes,
      write.modelVersion,
    );
    return await this.#guarded(async () => {
      const done = await this.#certain(write, async (transaction) => {
        const { client } = transaction;
        const found = await selectGuardedShard(client, shard, key);
        if (found.write !== undefined) {
          if (!found.write.digest.equals(digest)) throw keyUsed();
          return { ...found.write, isReplayed: true };
        }
        if (unknown !== undefined) throw unknown;
        await checkPreconditions(transaction, shard, found, preconditions);
        const { epoch, revision } = await transaction.write(shard, updates, meta, options);
        if (key !== '') await insertWriteKey(client, shard, key, { digest, epoch, revision });
        return { epoch, revision, isReplayed: false };
      });
      const { isReplayed } = done;
      if (!isReplayed) countUndecidable(this.#parts, shard, updates);
      const token = isReplayed
        ? await tokenAt(this.#parts, shard, done)
        : codec.encode(shard, done.epoch, done.revision);
      return { token, isReplayed };
    });
  }

  /** Runs it again where tuples were refused by rules that are over. */
  async #certain<T>(
    { shard, updates, meta, options }: CheckedWrite,
    work: (transaction: WriteTransaction) => Promise<T>,
  ): Promise<T> {
    const { writer, rules } = this.#parts;
    try {
      return await writer.exclusive([shard], meta, work);
    } catch (error) {
      if (!(error instanceof AppError) || error.reason !== 'TUPLE_NOT_ADMITTED') throw error;
      const { isByVersion } = options;
      const refusal = await certainRefusal(rules, shard, updates, 'updates', isByVersion);
      if (refusal !== undefined) throw refusal;
      return await writer.exclusive([shard], meta, work);
    }
  }

  async #guarded(run: () => Promise<GuardedWriteResult>): Promise<GuardedWriteResult> {
    const { metrics } = this.#parts;
    try {
      const result = await run();
      metrics.guarded(result.isReplayed ? 'replayed' : 'written');
      return result;
    } catch (error) {
      if (error instanceof AppError && REFUSALS.has(error.reason)) metrics.guarded('refused');
      throw error;
    }
  }

  #preconditions(
    shard: ShardKey,
    raw: readonly { readonly kind: RawPrecondition }[],
  ): Preconditions {
    const positions: { at: number; epoch: number; revision: number }[] = [];
    const matches: { at: number; mustExist: boolean; match: TupleMatch }[] = [];
    raw.forEach(({ kind }, at) => {
      const field = `preconditions[${at}]`;
      if (kind.case === 'unchangedSince') {
        const name = `${field}.unchanged_since`;
        if (kind.value === '') throw requiredError(name);
        positions.push({ at, ...this.#parts.codec.decode(shard, kind.value, name) });
      } else if (kind.case === undefined) throw requiredError(field);
      else {
        const mustExist = kind.case === 'mustExist';
        const name = `${field}.${mustExist ? 'must_exist' : 'must_not_exist'}`;
        const match = checkTupleFilter(name, kind.value);
        if (isEverything(match)) throw fieldError(name, 'needs at least one field');
        matches.push({ at, mustExist, match });
      }
    });
    return { positions, matches };
  }
}

const REFUSALS: ReadonlySet<string> = new Set([
  'PRECONDITION_FAILED',
  'IDEMPOTENCY_KEY_USED',
  'TUPLE_EXISTS',
  'TUPLE_DIFFERS',
  'TUPLE_MISSING',
]);

function isEmpty({ positions, matches }: Preconditions): boolean {
  return positions.length + matches.length === 0;
}

/** Errors: FIELD_INVALID unless it is 0 or the number of a version. */
function checkVersion(version: bigint): number {
  if (version >= 0n && version <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(version);
  throw fieldError('model_version', 'must be 0 or the number of a version');
}

/** By the numbers of the proto enum. */
const MODES: readonly UpdateMode[] = ['plain', 'absent', 'identical', 'present'];

/** Undefined where no update asks for anything. Errors: FIELD_INVALID. */
function checkModes(
  modes: readonly number[],
  updates: readonly TupleChange[],
): readonly UpdateMode[] | undefined {
  if (modes.length === 0) return undefined;
  if (modes.length !== updates.length) {
    throw fieldError('modes', 'must have one for each of updates, or be empty');
  }
  const checked = modes.map((number, at) => {
    const mode = MODES[number];
    if (mode === undefined) throw fieldError(`modes[${at}]`, 'is no mode that is known here');
    const isOfDelete = mode === 'present';
    if (mode !== 'plain' && isOfDelete !== (updates[at]?.op === 'delete')) {
      throw fieldError(`modes[${at}]`, `is a mode of ${isOfDelete ? 'deletes' : 'inserts'}`);
    }
    return mode;
  });
  return checked.every((mode) => mode === 'plain') ? undefined : checked;
}

function checkLimits({ preconditions, idempotencyKey }: GuardedWriteRequest): void {
  if (preconditions.length > PRECONDITIONS_MAX) {
    throw new AppError<AuthzReason>(
      'BATCH_TOO_LARGE',
      `preconditions: at most ${PRECONDITIONS_MAX} in one request`,
      { field: 'preconditions', limit: String(PRECONDITIONS_MAX) },
    );
  }
  checkName('idempotency_key', idempotencyKey);
}

/** A name that a caller gives, '' or at most 64 characters. Errors: FIELD_INVALID. */
export function checkName(field: string, name: string): void {
  checkText(field, name);
  // A code point is at most two units, so that only long texts need counting.
  if (name.length > KEY_CHARACTERS_MAX && Array.from(name).length > KEY_CHARACTERS_MAX) {
    throw fieldError(field, `must have at most ${KEY_CHARACTERS_MAX} characters`);
  }
}

async function checkPreconditions(
  { client }: WriteTransaction,
  shard: ShardKey,
  found: GuardedShard,
  { positions, matches }: Preconditions,
): Promise<void> {
  for (const { at, epoch, revision } of positions) {
    if (epoch !== found.epoch || revision !== found.revision) {
      throw refused(`preconditions[${at}].unchanged_since`, 'the tenant has changed since');
    }
  }
  if (matches.length === 0) return;
  const exist = await existMatches(
    client,
    shard,
    matches.map(({ match }) => match),
  );
  matches.forEach(({ at, mustExist }, index) => {
    if (exist[index] === mustExist) return;
    if (mustExist) throw refused(`preconditions[${at}].must_exist`, 'there is no such tuple');
    throw refused(`preconditions[${at}].must_not_exist`, 'there is such a tuple');
  });
}

/** PRECONDITION_FAILED that names the field. */
export function refused(field: string, problem: string): AppError {
  return new AppError<AuthzReason>('PRECONDITION_FAILED', `${field}: ${problem}`, { field });
}

function keyUsed(): AppError {
  const field = 'idempotency_key';
  return new AppError<AuthzReason>(
    'IDEMPOTENCY_KEY_USED',
    `${field}: another write was sent under this key`,
    { field },
  );
}

/**
 * Digest of the content of a write; the order of updates and preconditions counts. Without modes and a version it
 * equals that of earlier releases.
 */
function digestOf(
  updates: readonly string[],
  { positions, matches }: Preconditions,
  modes: readonly UpdateMode[] | undefined,
  version: bigint,
): Buffer {
  const asked = JSON.stringify([
    updates,
    positions.map(({ at, epoch, revision }) => [at, epoch, revision]),
    matches.map(({ at, mustExist, match }) => [
      at,
      mustExist,
      match.namespace,
      match.objectId,
      match.relation,
      match.subject,
    ]),
    ...(modes === undefined && version === 0n ? [] : [modes ?? []]),
    ...(version === 0n ? [] : [String(version)]),
  ]);
  return createHash('sha256').update(asked).digest();
}
