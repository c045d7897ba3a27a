import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { fieldError } from '../../model/reasons.ts';

/**
 * A page token holds the id after which a list continues, and the revision at which it began. It is valid on every instance:
 * nothing is remembered between pages. Layout before base64url:
 *
 *   0  version (1)
 *   1  consistency token of the first page, decoded (30 bytes)
 *   31 version of the project's settings at the first page, 48 bits, big endian
 *   37 first 9 bytes of SHA-256 of the query
 *   46 the last id of the page before, UTF-8
 *
 * Only the consistency token in it is authenticated. Whoever makes the rest up gets a page of the list that the
 * request asks for, from another id on, or a wrong `revision_changed`, and nothing that the request itself would not get.
 */
const VERSION = 1;
const TOKEN_AT = 1;
const SETTINGS_AT = 31;
const QUERY_AT = 37;
const KEY_AT = 46;
/** An id has at most 256 bytes. */
const TOKEN_BYTES_MAX = KEY_AT + 256;
const TOKEN_FORM = /^[A-Za-z0-9_-]{1,404}$/;

/** Members of a page token. */
export type PageToken = {
  /** Token of the first page. */
  readonly consistencyToken: string;
  readonly settingsVersion: number;
  /** Digest of the query: `queryDigest`. */
  readonly digest: Buffer;
  readonly after: string;
};

/** The digest that distinguishes one query from another: of the whole request of a page but its page token. */
export function queryDigest(query: unknown): Buffer {
  const text = JSON.stringify(query, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return hash('sha256', text, 'buffer').subarray(0, KEY_AT - QUERY_AT);
}

/** The text of a page token. */
export function encodePageToken(token: PageToken): string {
  const head = Buffer.alloc(KEY_AT);
  head[0] = VERSION;
  head.write(token.consistencyToken, TOKEN_AT, 'base64url');
  head.writeUIntBE(token.settingsVersion, SETTINGS_AT, QUERY_AT - SETTINGS_AT);
  token.digest.copy(head, QUERY_AT);
  return Buffer.concat([head, Buffer.from(token.after)]).toString('base64url');
}

/** The token that `text` is, of a query with this digest. Errors: FIELD_INVALID naming `page_token`. */
export function decodePageToken(text: string, digest: Buffer): PageToken {
  const bytes = TOKEN_FORM.test(text) ? Buffer.from(text, 'base64url') : Buffer.alloc(0);
  const key = bytes.subarray(KEY_AT);
  const isWhole = bytes.length > KEY_AT && bytes.length <= TOKEN_BYTES_MAX;
  if (!isWhole || bytes[0] !== VERSION || !isUtf8(key)) {
    throw fieldError('page_token', 'is not a token of a page');
  }
  if (!bytes.subarray(QUERY_AT, KEY_AT).equals(digest)) {
    throw fieldError(
      'page_token',
      'is of another question: only page_size may change between pages',
    );
  }
  return {
    consistencyToken: bytes.toString('base64url', TOKEN_AT, SETTINGS_AT),
    settingsVersion: bytes.readUIntBE(SETTINGS_AT, QUERY_AT - SETTINGS_AT),
    digest,
    after: key.toString(),
  };
}
