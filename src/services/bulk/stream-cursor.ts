import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { ModelReason } from '../../model/model-reason.ts';
import { AppError } from '../../shared/app-error.ts';
import type { TupleMatch } from '../../store/sql/match-tuples.ts';

/** Where a stream of tuples stands. */
export type StreamPosition = {
  readonly tenantId: string;
  /** The revision that was streamed. */
  readonly epoch: number;
  readonly seq: number;
  /** Key of the last tuple, in the order of the primary key; null: none of the tenant yet. */
  readonly key: readonly string[] | null;
};

/** What a stream is of: a cursor is good for the same one only. `tenantId` null: every tenant. */
export type StreamScope = {
  readonly projectId: string;
  readonly tenantId: string | null;
  readonly match: TupleMatch;
};

const VERSION = 1;
const MAC_CHARACTERS = 16;
const KEY_COLUMNS = 6;
/** A key has at most 4 × 64 + 2 × 256 bytes, which JSON and base64url make longer. */
const TEXT_MAX = 8_192;

/** Makes and reads the cursors of one deployment: good on every instance, and made by nobody else. */
export class StreamCursors {
  readonly #key: Uint8Array;

  /** `key` is `deployment.token_key`. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  encode(scope: StreamScope, { tenantId, epoch, seq, key }: StreamPosition): string {
    const body = JSON.stringify([VERSION, tenantId, epoch, seq, ...(key ?? [])]);
    const text = Buffer.from(body).toString('base64url');
    return `${text}.${this.#mac(scope, text)}`;
  }

  /** Errors: FIELD_INVALID, which does not say why: malformed, forged, or of another stream. */
  decode(scope: StreamScope, cursor: string): StreamPosition {
    const dot = cursor.length - MAC_CHARACTERS - 1;
    if (dot < 1 || cursor.length > TEXT_MAX || cursor[dot] !== '.') throw cursorError();
    const text = cursor.slice(0, dot);
    const expected = Buffer.from(this.#mac(scope, text));
    const given = Buffer.from(cursor.slice(dot + 1));
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw cursorError();
    // Made by us: only a later version of it may look otherwise.
    const [version, tenantId, epoch, seq, ...key] = JSON.parse(
      Buffer.from(text, 'base64url').toString('utf8'),
    ) as [number, string, number, number, ...string[]];
    if (version !== VERSION || (key.length !== 0 && key.length !== KEY_COLUMNS)) {
      throw cursorError();
    }
    return { tenantId, epoch, seq, key: key.length === 0 ? null : key };
  }

  #mac({ projectId, tenantId, match }: StreamScope, text: string): string {
    const { namespace, objectId, relation, subject } = match;
    const scope = JSON.stringify([projectId, tenantId, namespace, objectId, relation, subject]);
    const digest = createHash('sha256').update(scope).digest();
    // The prefix keeps it apart from everything else that the key signs.
    const mac = createHmac('sha256', this.#key).update('tuple-stream\u0000').update(digest);
    return mac.update(text).digest('base64url').slice(0, MAC_CHARACTERS);
  }
}

function cursorError(): AppError {
  return new AppError<ModelReason>(
    'FIELD_INVALID',
    'cursor: is not one of this stream: of the same project, tenant and filter',
    { field: 'cursor' },
  );
}
