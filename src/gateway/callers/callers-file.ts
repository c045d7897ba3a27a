import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { RateLimit } from '../../shared/token-bucket.ts';
import type { CallerScope } from './caller-scopes.ts';
import { METHOD_CLASSES, type MethodClass, SCOPED_SERVICES } from './method-rules.ts';

/** The subject of a JWT: its claims `iss` and `sub`. */
export type JwtSubject = { readonly issuer: string; readonly subject: string };

/** A caller as its file has it. */
export type CallerDefinition = {
  readonly name: string;
  readonly tokens: readonly string[];
  /** SHA-256 of tokens that the file does not hold, in lower-case hex. */
  readonly tokenDigests: readonly string[];
  readonly jwts: readonly JwtSubject[];
  readonly scopes: readonly CallerScope[];
  readonly rateLimit: RateLimit | undefined;
};

/** An issuer whose JWTs are accepted. */
export type IssuerDefinition = {
  readonly issuer: string;
  readonly audience: string;
  readonly algorithms: readonly string[];
  readonly jwksUrl: string;
  readonly clockToleranceSeconds: number;
};

export type CallersFile = {
  readonly callers: readonly CallerDefinition[];
  readonly issuers: readonly IssuerDefinition[];
};

const CALLERS_MAX = 1_000;
const ISSUERS_MAX = 8;
const LIST_MAX = 1_000;
const TEXT_MAX = 2_048;
const RATE_MAX = 1_000_000_000;
const TOLERANCE_MAX = 60;
/** Names that metrics, records and log lines use for others. */
const RESERVED_NAMES: ReadonlySet<string> = new Set(['anonymous', 'service-token', 'other']);
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** A token travels in a header: anything else could never be matched. */
const TOKEN = /^[\x21-\x7e]{1,2048}$/;
const DIGEST = /^[0-9a-f]{64}$/;
const PROJECT = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const TENANT = /^[A-Za-z0-9._:-]{0,128}$/;
/** Algorithms with a pair of keys: whoever can check a signature cannot make one. */
export const JWT_ALGORITHMS: readonly string[] = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/**
 * The callers that `text` describes (docs/operations.md, "Callers"). Errors: CONFIG_INVALID that names the
 * position, and holds nothing of a token. Cost: O(text).
 */
export function parseCallersFile(text: string): CallersFile {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // The parser's own text shows a part of the file.
    throw problem('', 'is not valid JSON');
  }
  const root = objectAt('', json, ['callers'], ['jwt_issuers']);
  const issuers = listAt('jwt_issuers', root['jwt_issuers'] ?? [], ISSUERS_MAX, issuerAt);
  const callers = listAt('callers', root['callers'], CALLERS_MAX, callerAt);
  if (callers.length === 0) throw problem('callers', 'is empty');
  assertUnique(
    'jwt_issuers',
    'issuer',
    issuers.map(({ issuer }) => [issuer]),
  );
  assertUnique(
    'callers',
    'name',
    callers.map(({ name }) => [name]),
  );
  assertUnique(
    'callers',
    'token',
    callers.map(({ tokens }) => tokens),
  );
  assertUnique(
    'callers',
    'token_sha256',
    callers.map(({ tokenDigests }) => tokenDigests),
  );
  assertUnique(
    'callers',
    'jwt',
    callers.map(({ jwts }) => jwts.map((one) => JSON.stringify([one.issuer, one.subject]))),
  );
  const known = new Set(issuers.map(({ issuer }) => issuer));
  callers.forEach(({ jwts }, i) => {
    if (jwts.every(({ issuer }) => known.has(issuer))) return;
    throw problem(`callers[${i}].jwt`, 'names an issuer that jwt_issuers does not have');
  });
  return { callers, issuers };
}

function callerAt(path: string, value: unknown): CallerDefinition {
  const optional = ['tokens', 'token_sha256', 'jwt', 'rate_limit'];
  const json = objectAt(path, value, ['name', 'scopes'], optional);
  const name = textAt(`${path}.name`, json['name'], NAME, 'letters, digits, `.`, `_` and `-`');
  if (RESERVED_NAMES.has(name)) throw problem(`${path}.name`, `must not be ${name}`);
  const tokens = listAt(`${path}.tokens`, json['tokens'] ?? [], LIST_MAX, (at, one) =>
    textAt(at, one, TOKEN, 'printable ASCII without spaces'),
  );
  const digests = listAt(`${path}.token_sha256`, json['token_sha256'] ?? [], LIST_MAX, (at, one) =>
    textAt(at, one, DIGEST, '64 digits of lower-case hex'),
  );
  const jwts = listAt(`${path}.jwt`, json['jwt'] ?? [], LIST_MAX, subjectAt);
  if (tokens.length + digests.length + jwts.length === 0) {
    throw problem(path, 'has none of tokens, token_sha256 and jwt');
  }
  const scopes = listAt(`${path}.scopes`, json['scopes'], LIST_MAX, scopeAt);
  const rate = json['rate_limit'];
  const rateLimit = rate === undefined ? undefined : rateAt(`${path}.rate_limit`, rate);
  return { name, tokens, tokenDigests: digests, jwts, scopes, rateLimit };
}

function subjectAt(path: string, value: unknown): JwtSubject {
  const json = objectAt(path, value, ['issuer', 'subject']);
  return {
    issuer: plainText(`${path}.issuer`, json['issuer']),
    subject: plainText(`${path}.subject`, json['subject']),
  };
}

function scopeAt(path: string, value: unknown): CallerScope {
  const json = objectAt(path, value, ['projects', 'tenants', 'services', 'methods']);
  const services = namesAt(`${path}.services`, json['services'], (at, one) =>
    memberAt(at, one, SCOPED_SERVICES),
  );
  const methods = namesAt(`${path}.methods`, json['methods'], (at, one) =>
    memberAt<MethodClass>(at, one, METHOD_CLASSES),
  );
  return {
    projects: namesAt(`${path}.projects`, json['projects'], (at, one) =>
      textAt(at, one, PROJECT, 'the id of a project'),
    ),
    tenants: namesAt(`${path}.tenants`, json['tenants'], (at, one) =>
      textAt(at, one, TENANT, 'the id of a tenant, or "" for the default tenant'),
    ),
    services,
    methods,
  };
}

function rateAt(path: string, value: unknown): RateLimit {
  const json = objectAt(path, value, ['per_second'], ['burst']);
  const perSecond = numberAt(`${path}.per_second`, json['per_second'], RATE_MAX);
  if (perSecond === 0) throw problem(`${path}.per_second`, 'must be above 0');
  const burst = numberAt(
    `${path}.burst`,
    json['burst'] ?? Math.max(1, Math.ceil(perSecond)),
    RATE_MAX,
  );
  if (burst < 1) throw problem(`${path}.burst`, 'must be 1 at least');
  return { perSecond, burst };
}

function issuerAt(path: string, value: unknown): IssuerDefinition {
  const needed = ['issuer', 'audience', 'algorithms', 'jwks_url'];
  const json = objectAt(path, value, needed, ['clock_tolerance_seconds']);
  const algorithms = listAt(`${path}.algorithms`, json['algorithms'], LIST_MAX, (at, one) =>
    memberAt(at, one, JWT_ALGORITHMS),
  );
  if (algorithms.length === 0) throw problem(`${path}.algorithms`, 'is empty');
  const jwksUrl = plainText(`${path}.jwks_url`, json['jwks_url']);
  const url = URL.canParse(jwksUrl) ? new URL(jwksUrl) : undefined;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') {
    throw problem(`${path}.jwks_url`, 'must be an https:// URL without a user');
  }
  return {
    issuer: plainText(`${path}.issuer`, json['issuer']),
    audience: plainText(`${path}.audience`, json['audience']),
    algorithms,
    jwksUrl,
    clockToleranceSeconds: numberAt(
      `${path}.clock_tolerance_seconds`,
      json['clock_tolerance_seconds'] ?? 0,
      TOLERANCE_MAX,
    ),
  };
}

type FileObject = Readonly<Record<string, unknown>>;

function objectAt(
  path: string,
  value: unknown,
  needed: readonly string[],
  optional: readonly string[] = [],
): FileObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw problem(path, 'must be an object');
  }
  const json = value as FileObject;
  const missing = needed.find((name) => !Object.hasOwn(json, name));
  if (missing !== undefined) throw problem(path, `lacks ${missing}`);
  // An unknown name may be a token at the wrong position: it is not shown.
  const known = [...needed, ...optional];
  const isKnown = Object.keys(json).every((name) => known.includes(name));
  if (!isKnown) throw problem(path, `may have only ${known.join(', ')}`);
  return json;
}

function listAt<T>(
  path: string,
  value: unknown,
  max: number,
  itemAt: (path: string, item: unknown) => T,
): readonly T[] {
  if (!Array.isArray(value)) throw problem(path, 'must be a list');
  if (value.length > max) throw problem(path, `has more than ${max} entries`);
  return value.map((item: unknown, i) => itemAt(`${path}[${i}]`, item));
}

function namesAt<T extends string>(
  path: string,
  value: unknown,
  nameAt: (path: string, value: unknown) => T,
): readonly T[] | '*' {
  if (value === '*') return '*';
  if (Array.isArray(value) && value.length === 1 && value[0] === '*') return '*';
  if (!Array.isArray(value)) throw problem(path, 'must be a list, or "*" for all');
  if (value.includes('*')) throw problem(path, 'has "*" beside others');
  return listAt(path, value, LIST_MAX, nameAt);
}

function textAt(path: string, value: unknown, pattern: RegExp, rule: string): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw problem(path, `must be ${rule}`);
  return value;
}

function plainText(path: string, value: unknown): string {
  const isPlain = typeof value === 'string' && value !== '' && value.length <= TEXT_MAX;
  if (!isPlain) throw problem(path, `must be a text of 1 to ${TEXT_MAX} characters`);
  return value;
}

function memberAt<T extends string>(path: string, value: unknown, members: readonly T[]): T {
  const found = members.find((member) => member === value);
  if (found === undefined) throw problem(path, `must be one of ${members.join(', ')}`);
  return found;
}

function numberAt(path: string, value: unknown, max: number): number {
  const isNumber = typeof value === 'number' && value >= 0 && value <= max;
  if (!isNumber) throw problem(path, `must be a number between 0 and ${max}`);
  return value;
}

/** Asserts that each text occurs once in all lists together; errors show `what` instead of it. */
function assertUnique(path: string, what: string, lists: readonly (readonly string[])[]): void {
  const owner = new Map<string, number>();
  lists.forEach((list, i) => {
    for (const text of list) {
      const other = owner.get(text);
      if (other !== undefined) {
        throw problem(`${path}[${i}]`, `has a ${what} that ${path}[${other}] has, too`);
      }
      owner.set(text, i);
    }
  });
}

function problem(path: string, text: string): AppError {
  const message = path === '' ? text : `${path} ${text}`;
  return new AppError<AuthzReason>('CONFIG_INVALID', message);
}
