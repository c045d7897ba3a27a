import { createHash } from 'node:crypto';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { TupleMatch } from '../../store/sql/reads/match-tuples.ts';
import { SignedCursors } from '../reads/signed-cursor.ts';

/** Position of a stream of tuples. */
export type StreamPosition = {
  readonly tenantId: string;
  /** The revision that was streamed. */
  readonly epoch: number;
  readonly revision: number;
  /** Key of the last tuple, in the order of the primary key; null: none of the tenant yet. */
  readonly key: readonly string[] | null;
};

/** Scope of a stream of tuples: a cursor is good for the same scope only. `tenantId` null: every tenant. */
export type StreamScope = {
  readonly projectId: string;
  readonly tenantId: string | null;
  readonly match: TupleMatch;
};

const VERSION = 1;
const KEY_COLUMNS = 6;
/** A key has at most 4 × 64 + 2 × 256 bytes, which JSON and base64url make longer. */
const TEXT_MAX = 8_192;

/** Makes and reads the cursors of one deployment: good on every instance, and made by nobody else. */
export class StreamCursors {
  readonly #cursors: SignedCursors;

  /** `key` is `deployment.token_key`. */
  constructor(key: Uint8Array) {
    this.#cursors = new SignedCursors(key, { domain: 'tuple-stream', charactersMax: TEXT_MAX });
  }

  encode(scope: StreamScope, { tenantId, epoch, revision, key }: StreamPosition): string {
    const fields = [VERSION, tenantId, epoch, revision, ...(key ?? [])];
    return this.#cursors.encode(digestOf(scope), fields);
  }

  /** Errors: FIELD_INVALID, without the cause: malformed, forged, or of another stream. */
  decode(scope: StreamScope, cursor: string): StreamPosition {
    const fields = this.#cursors.decode(digestOf(scope), cursor);
    if (fields === undefined) throw cursorError();
    // Signed by this deployment: only a later version may have another form.
    const [version, tenantId, epoch, revision, ...key] = fields as [
      number,
      string,
      number,
      number,
      ...string[],
    ];
    if (version !== VERSION || (key.length !== 0 && key.length !== KEY_COLUMNS)) {
      throw cursorError();
    }
    return { tenantId, epoch, revision, key: key.length === 0 ? null : key };
  }
}

/** Digest of the scope that a cursor is good for. */
function digestOf({ projectId, tenantId, match }: StreamScope): Uint8Array {
  const { namespace, objectId, relation, subject } = match;
  const scope = JSON.stringify([projectId, tenantId, namespace, objectId, relation, subject]);
  return createHash('sha256').update(scope).digest();
}

function cursorError(): AppError {
  return new AppError<AuthzReason>(
    'FIELD_INVALID',
    'cursor: is not one of this stream: of the same project, tenant and filter',
    { field: 'cursor' },
  );
}
