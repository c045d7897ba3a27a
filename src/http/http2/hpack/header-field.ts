/** Kinds of fields, by name: how several are joined, and which values are valid. */
export const FieldKind = {
  /** A second one is joined to the first by a comma. */
  joined: 0,
  /** Only the first of several counts. */
  single: 1,
  cookie: 2,
  setCookie: 3,
  method: 4,
  scheme: 5,
  authority: 6,
  path: 7,
  contentLength: 8,
  te: 9,
  host: 10,
  /** Must not be sent: a field of connections, a pseudo field that requests do not have, or an invalid name. */
  forbidden: 11,
} as const;
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind];

/** Bytes that each field counts in addition to its own (RFC 7541 section 4.1). */
export const FIELD_OVERHEAD_BYTES = 32;

/** A field of a header list, checked once: a field that a table holds is not checked again. */
export class HeaderField {
  readonly name: string;
  readonly value: string;
  readonly kind: FieldKind;
  /** Whether the value is one that a field of this name may have. */
  readonly isValid: boolean;

  /** `name` and `value` have a character for each byte. */
  constructor(name: string, value: string) {
    this.name = name;
    this.value = value;
    this.kind = kindOf(name);
    this.isValid = isValueValid(this.kind, value);
  }

  /** Size as header lists and tables count it. */
  get size(): number {
    return this.name.length + this.value.length + FIELD_OVERHEAD_BYTES;
  }
}

const KINDS = new Map<string, FieldKind>([
  [':method', FieldKind.method],
  [':scheme', FieldKind.scheme],
  [':authority', FieldKind.authority],
  [':path', FieldKind.path],
  ['content-length', FieldKind.contentLength],
  ['te', FieldKind.te],
  ['host', FieldKind.host],
  ['cookie', FieldKind.cookie],
  ['set-cookie', FieldKind.setCookie],
]);
/** Fields of connections (RFC 9113 section 8.2.2). */
const OF_CONNECTIONS = 'connection keep-alive proxy-connection transfer-encoding upgrade';
for (const name of OF_CONNECTIONS.split(' ')) KINDS.set(name, FieldKind.forbidden);
/** Names of single fields, as node:http2 has them. */
const SINGLE =
  'access-control-allow-credentials access-control-max-age access-control-request-method age authorization ' +
  'content-encoding content-language content-location content-md5 content-range content-type date dnt etag expires from ' +
  'if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards ' +
  'proxy-authorization range referer retry-after tk upgrade-insecure-requests user-agent x-content-type-options';
for (const name of SINGLE.split(' ')) KINDS.set(name, FieldKind.single);

/** A token of RFC 9110 without capitals. */
const NAME = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/;

function kindOf(name: string): FieldKind {
  const known = KINDS.get(name);
  if (known !== undefined) return known;
  return NAME.test(name) ? FieldKind.joined : FieldKind.forbidden;
}

/** Neither control characters nor blanks at either end; bytes beyond ASCII may be anything. */
const VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;
const METHOD = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/;
const SCHEME = /^[A-Za-z][A-Za-z0-9+\-.]*$/;
const AUTHORITY = /^[A-Za-z0-9\-._~!$&'()*+,;=:%@[\]]*$/;
const PATH = /^[\x21-\x7e\x80-\xff]+$/;
/** A number that is exact. */
const LENGTH = /^[0-9]{1,15}$/;

function isValueValid(kind: FieldKind, value: string): boolean {
  switch (kind) {
    case FieldKind.method:
      return METHOD.test(value);
    case FieldKind.scheme:
      return SCHEME.test(value);
    case FieldKind.authority:
    case FieldKind.host:
      return AUTHORITY.test(value);
    case FieldKind.path:
      return PATH.test(value);
    case FieldKind.contentLength:
      return LENGTH.test(value);
    case FieldKind.te:
      return value.toLowerCase() === 'trailers';
    case FieldKind.forbidden:
      return false;
    default:
      return VALUE.test(value);
  }
}
