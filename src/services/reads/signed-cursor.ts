import { createHmac, timingSafeEqual } from 'node:crypto';

const MAC_CHARACTERS = 16;

/** Properties that distinguish cursors of one kind from everything else that the key signs. */
export type CursorKind = {
  /** Names the kind within the MAC. */
  readonly domain: string;
  /** Characters of a cursor at most. */
  readonly charactersMax: number;
};

/**
 * Cursors that a caller keeps: fields as JSON, readable, with 96 bits of an HMAC-SHA-256 over the kind, the scope that the
 * cursor is good for, and the fields. Good on every instance of a deployment, and made by nobody else.
 */
export class SignedCursors {
  readonly #key: Uint8Array;
  readonly #kind: CursorKind;

  /** `key` is `deployment.token_key`. */
  constructor(key: Uint8Array, kind: CursorKind) {
    this.#key = key;
    this.#kind = kind;
  }

  /** `scope` is what the cursor is of, in bytes or text that are of no other scope. */
  encode(scope: string | Uint8Array, fields: readonly unknown[]): string {
    const text = Buffer.from(JSON.stringify(fields)).toString('base64url');
    return `${text}.${this.#mac(scope, text)}`;
  }

  /** The fields; undefined: malformed, forged, of another kind or scope. They are ours, perhaps of another version. */
  decode(scope: string | Uint8Array, cursor: string): readonly unknown[] | undefined {
    const dot = cursor.length - MAC_CHARACTERS - 1;
    if (dot < 1 || cursor.length > this.#kind.charactersMax || cursor[dot] !== '.')
      return undefined;
    const text = cursor.slice(0, dot);
    const expected = Buffer.from(this.#mac(scope, text));
    const given = Buffer.from(cursor.slice(dot + 1));
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as readonly unknown[];
  }

  #mac(scope: string | Uint8Array, text: string): string {
    const mac = createHmac('sha256', this.#key).update(`${this.#kind.domain}\u0000`);
    return mac.update(scope).update(text).digest('base64url').slice(0, MAC_CHARACTERS);
  }
}
