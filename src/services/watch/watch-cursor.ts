import { createHmac, timingSafeEqual } from 'node:crypto';
import type { ModelReason } from '../../model/model-reason.ts';
import { AppError } from '../../shared/app-error.ts';

/** Where a follower of one shard stands. */
export type ShardCursor = {
  readonly kind: 'shard';
  readonly epoch: number;
  readonly seq: number;
  readonly modelVersion: number;
};

/** Where a follower of a whole project stands: in the window between two snapshots of the database. */
export type ProjectCursor = {
  readonly kind: 'project';
  /** Of the deployment. */
  readonly epoch: number;
  /** Everything that this snapshot shows was told. */
  readonly since: string;
  /** The window that is being told; null: the next one is to be opened. */
  readonly upto: string | null;
  /** What was told of the window. */
  readonly tenantId: string;
  readonly seq: number;
  readonly modelVersion: number;
};

export type WatchCursor = ShardCursor | ProjectCursor;

const MAC_CHARACTERS = 16;
/** Snapshots name each open transaction: some thousands of them at most. */
export const CURSOR_CHARACTERS_MAX = 64 * 1024;

/** Makes and reads the cursors of one deployment: good on every instance, and made by nobody else. */
export class WatchCursors {
  readonly #key: Uint8Array;

  /** `key` is `deployment.token_key`. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  encode(projectId: string, tenantId: string | null, cursor: WatchCursor): string {
    const fields =
      cursor.kind === 'shard'
        ? [1, cursor.epoch, cursor.seq, cursor.modelVersion]
        : [
            2,
            cursor.epoch,
            cursor.modelVersion,
            cursor.since,
            cursor.upto,
            cursor.tenantId,
            cursor.seq,
          ];
    const text = Buffer.from(JSON.stringify(fields)).toString('base64url');
    return `${text}.${this.#mac(projectId, tenantId, text)}`;
  }

  /** Errors: FIELD_INVALID, which does not say why: malformed, forged, or of another stream. */
  decode(projectId: string, tenantId: string | null, cursor: string): WatchCursor {
    const dot = cursor.length - MAC_CHARACTERS - 1;
    if (dot < 1 || cursor.length > CURSOR_CHARACTERS_MAX || cursor[dot] !== '.')
      throw cursorError();
    const text = cursor.slice(0, dot);
    const expected = Buffer.from(this.#mac(projectId, tenantId, text));
    const given = Buffer.from(cursor.slice(dot + 1));
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw cursorError();
    // Made by us: only another version of it may look otherwise.
    const fields = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown[];
    if (fields[0] === 1 && fields.length === 4) {
      const [, epoch, seq, modelVersion] = fields as [1, number, number, number];
      return { kind: 'shard', epoch, seq, modelVersion };
    }
    if (fields[0] === 2 && fields.length === 7) {
      const [, epoch, modelVersion, since, upto, tenant, seq] = fields as [
        2,
        number,
        number,
        string,
        string | null,
        string,
        number,
      ];
      return { kind: 'project', epoch, since, upto, tenantId: tenant, seq, modelVersion };
    }
    throw cursorError();
  }

  #mac(projectId: string, tenantId: string | null, text: string): string {
    // The prefix keeps it apart from everything else that the key signs.
    const mac = createHmac('sha256', this.#key).update('tuple-watch\u0000');
    mac.update(`${JSON.stringify([projectId, tenantId])}\u0000`);
    return mac.update(text).digest('base64url').slice(0, MAC_CHARACTERS);
  }
}

function cursorError(): AppError {
  return new AppError<ModelReason>(
    'FIELD_INVALID',
    'start_after: is neither a cursor of this watch nor a consistency token of its project and tenant',
    { field: 'start_after' },
  );
}
