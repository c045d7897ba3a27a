import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { SignedCursors } from '../reads/signed-cursor.ts';

/** Position of a follower of one shard. */
export type ShardCursor = {
  readonly kind: 'shard';
  readonly epoch: number;
  readonly revision: number;
  readonly modelVersion: number;
};

/** Position of a follower of a whole project: in the window between two snapshots of the database. */
export type ProjectCursor = {
  readonly kind: 'project';
  /** Epoch of the deployment. */
  readonly epoch: number;
  /** Snapshot whose writes were all delivered. */
  readonly since: string;
  /** End of the window that is being delivered; null: the next window is not open yet. */
  readonly upto: string | null;
  /** Last tenant and revision of the window that were delivered. */
  readonly tenantId: string;
  readonly revision: number;
  readonly modelVersion: number;
};

export type WatchCursor = ShardCursor | ProjectCursor;

/** Snapshots name each open transaction: some thousands of them at most. */
export const CURSOR_CHARACTERS_MAX = 64 * 1024;

/** Makes and reads the cursors of one deployment: good on every instance, and made by nobody else. */
export class WatchCursors {
  readonly #cursors: SignedCursors;

  /** `key` is `deployment.token_key`. */
  constructor(key: Uint8Array) {
    const charactersMax = CURSOR_CHARACTERS_MAX;
    this.#cursors = new SignedCursors(key, { domain: 'tuple-watch', charactersMax });
  }

  encode(projectId: string, tenantId: string | null, cursor: WatchCursor): string {
    const fields =
      cursor.kind === 'shard'
        ? [1, cursor.epoch, cursor.revision, cursor.modelVersion]
        : [
            2,
            cursor.epoch,
            cursor.modelVersion,
            cursor.since,
            cursor.upto,
            cursor.tenantId,
            cursor.revision,
          ];
    return this.#cursors.encode(scopeOf(projectId, tenantId), fields);
  }

  /** Errors: FIELD_INVALID, without the cause: malformed, forged, or of another stream. */
  decode(projectId: string, tenantId: string | null, cursor: string): WatchCursor {
    const fields = this.#cursors.decode(scopeOf(projectId, tenantId), cursor);
    if (fields === undefined) throw cursorError();
    // Signed by this deployment: only another version may have another form.
    if (fields[0] === 1 && fields.length === 4) {
      const [, epoch, revision, modelVersion] = fields as [1, number, number, number];
      return { kind: 'shard', epoch, revision, modelVersion };
    }
    if (fields[0] === 2 && fields.length === 7) {
      const [, epoch, modelVersion, since, upto, tenant, revision] = fields as [
        2,
        number,
        number,
        string,
        string | null,
        string,
        number,
      ];
      return { kind: 'project', epoch, since, upto, tenantId: tenant, revision, modelVersion };
    }
    throw cursorError();
  }
}

/** Scope that a cursor is good for; nothing else ends where its fields begin. */
function scopeOf(projectId: string, tenantId: string | null): string {
  return `${JSON.stringify([projectId, tenantId])}\u0000`;
}

function cursorError(): AppError {
  return new AppError<AuthzReason>(
    'FIELD_INVALID',
    'start_after: is neither a cursor of this watch nor a consistency token of its project and tenant',
    { field: 'start_after' },
  );
}
