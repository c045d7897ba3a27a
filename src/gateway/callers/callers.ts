import { createHash } from 'node:crypto';
import { bearerStart } from '../../http/service-tokens.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { TokenBucket } from '../../shared/token-bucket.ts';
import { CallerScopes, EVERYTHING, type CallerScope } from './caller-scopes.ts';
import { Caller, type CallCounts, Credential, type CredentialSource } from './caller.ts';
import type { CallerDefinition, CallersFile, IssuerDefinition } from './callers-file.ts';
import { CredentialTable, type KnownToken } from './credential-table.ts';
import { JwksFeed } from './jwks-feed.ts';
import { type CheckedJwt, checkJwt, isJwt } from './jwt-checks.ts';

export type CallersOptions = {
  /** Tokens without a name of their own, which reach everything. */
  readonly tokens: readonly string[];
  /** Absent if none. Without both, every caller is admitted. */
  readonly file: CallersFile | undefined;
  readonly defaultProjectId: string;
  /** Why the keys of an issuer cannot be fetched; null: they could be. */
  readonly onKeysFetched: (issuer: string, problem: string | null) => void;
};

/** Callers that metrics know by name; all further ones together are `other`. */
const NAMES_MAX = 100;
const OTHER = 'other';
const JWTS_MAX = 10_000;
const CHECKS_MAX = 256;
const SWEEP_MS = 1_000;

/** A JWT of the table with the claims and the key that it was checked by. */
type OfJwt = CheckedJwt & { readonly text: string };

/**
 * The callers by the credentials that they present, as the settings and their files have it at this moment.
 *
 * C1 Whether callers are authenticated at all is decided at the start. No later file changes it.
 *    [callers.test.ts]
 * C2 From `replace…` on, a token that is not in the new set is not found. Streams that it opened
 *    are ended. [callers.test.ts]
 * C3 A token stays the same credential, with its streams, if its caller keeps name and scopes.
 *    [callers.test.ts]
 * C4 A JWT is found until it expires, and no longer than its key, its issuer and its subject are
 *    the same. [test/callers/jwt.host.test.ts]
 */
export class Callers implements CredentialSource {
  /** Whether everybody is let in. */
  readonly isOpen: boolean;
  readonly #options: CallersOptions;
  readonly #anonymous: Credential;
  readonly #trusted: Caller;
  readonly #counts = new Map<string, CallCounts>();
  readonly #checks = new Map<string, Promise<Credential | null>>();
  #tokens: readonly string[];
  #file: CallersFile;
  #table = new CredentialTable();
  /** By name, each with what it was made of. */
  #callers = new Map<string, { readonly made: string; readonly caller: Caller }>();
  #callerOfDigest = new Map<string, Caller>();
  #callerOfSubject = new Map<string, Caller>();
  #feeds = new Map<string, JwksFeed>();
  #jwts = new Map<string, OfJwt>();
  #sweep: NodeJS.Timeout | undefined;
  #isStarted = false;

  constructor(options: CallersOptions) {
    this.#options = options;
    this.#tokens = options.tokens;
    this.#file = options.file ?? { callers: [], issuers: [] };
    this.isOpen = options.tokens.length === 0 && options.file === undefined;
    // An open service needs no scope.
    this.#anonymous = new Credential(this.#caller('anonymous', this.isOpen ? EVERYTHING : []));
    this.#trusted = this.#caller('service-token', EVERYTHING);
    this.#install();
  }

  /** Fetches keys, and forgets what has expired, from now on. */
  start(): void {
    this.#isStarted = true;
    for (const feed of this.#feeds.values()) feed.start();
    this.#sweep ??= setInterval(() => this.#dropExpired(), SWEEP_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([...this.#feeds.values()].map((feed) => feed.stop()));
  }

  /** Hot. As CredentialSource has it; everybody is `anonymous` where nobody is authenticated. */
  peek(header: string): Credential | null {
    if (this.isOpen) return this.#anonymous;
    return this.#table.peek(header);
  }

  /** The credential of a call that health and reflection are open to. */
  get anonymous(): Credential {
    return this.#anonymous;
  }

  /**
   * Finds the credential like `peek`, also of a token that is presented for the first time; null where it is unknown here. Only
   * a token in the form of a JWT of ours gives a promise, which may reject with KEYS_UNAVAILABLE or RATE_LIMITED.
   */
  identify(header: string): Credential | null | Promise<Credential | null> {
    const known = this.peek(header);
    if (known !== null) return known;
    const start = bearerStart(header);
    if (start < 0) return null;
    const token = header.slice(start);
    if (this.#callerOfDigest.size > 0) {
      const caller = this.#callerOfDigest.get(digestOf(token));
      if (caller !== undefined) return this.#learn(token, caller, Infinity);
    }
    return this.#feeds.size > 0 && isJwt(token) ? this.#check(token) : null;
  }

  /** Replaces the tokens without a name by these. An empty list would change who is let in (C1). */
  replaceTokens(tokens: readonly string[]): void {
    this.#tokens = tokens;
    this.#install();
  }

  replaceFile(file: CallersFile): void {
    this.#file = file;
    this.#install();
  }

  /** By name; `other` has those beyond the first hundred. */
  get counts(): ReadonlyMap<string, CallCounts> {
    return this.#counts;
  }

  /** Builds the table anew from the settings and keeps what still holds (C2, C3). */
  #install(): void {
    const before = this.#table;
    const callers = new Map<string, { readonly made: string; readonly caller: Caller }>();
    this.#callerOfDigest = new Map();
    this.#callerOfSubject = new Map();
    const texts: (readonly [string, Caller])[] = this.#tokens.map((text) => [text, this.#trusted]);
    for (const definition of this.#file.callers) {
      const entry = this.#callerOf(definition);
      callers.set(definition.name, entry);
      // Behind those without a name: where a token is in both, it has the name and the scopes.
      for (const text of definition.tokens) texts.push([text, entry.caller]);
      for (const digest of definition.tokenDigests) this.#callerOfDigest.set(digest, entry.caller);
      for (const { issuer, subject } of definition.jwts) {
        this.#callerOfSubject.set(subjectKey(issuer, subject), entry.caller);
      }
    }
    this.#callers = callers;
    this.#setFeeds();
    this.#table = new CredentialTable();
    for (const [text, caller] of texts) this.#remember(before.get(text), text, caller, Infinity);
    for (const known of before.values()) this.#rememberAgain(known);
    this.#revokeMissing(before);
  }

  #callerOf(definition: CallerDefinition): { readonly made: string; readonly caller: Caller } {
    const { name, scopes, rateLimit } = definition;
    const made = JSON.stringify(scopes);
    const known = this.#callers.get(name);
    const bucket =
      rateLimit === undefined
        ? undefined
        : (known?.caller.bucket ?? new TokenBucket(rateLimit, performance.now()));
    if (rateLimit !== undefined) bucket?.change(rateLimit);
    if (known?.made === made) {
      known.caller.bucket = bucket;
      return known;
    }
    const compiled = new CallerScopes(scopes, this.#options.defaultProjectId);
    return { made, caller: new Caller(name, compiled, this.#countsOf(name), bucket) };
  }

  #caller(name: string, scopes: readonly CallerScope[]): Caller {
    const compiled = new CallerScopes(scopes, this.#options.defaultProjectId);
    return new Caller(name, compiled, this.#countsOf(name), undefined);
  }

  #countsOf(name: string): CallCounts {
    const label = this.#counts.has(name) || this.#counts.size < NAMES_MAX ? name : OTHER;
    let counts = this.#counts.get(label);
    if (counts === undefined) {
      counts = { accepted: 0, rateLimited: 0, outOfScope: 0 };
      this.#counts.set(label, counts);
    }
    return counts;
  }

  #remember(
    known: KnownToken | undefined,
    text: string,
    caller: Caller,
    expiresAtMs: number,
  ): Credential {
    const credential =
      known !== undefined && known.credential.caller === caller
        ? known.credential
        : new Credential(caller);
    this.#table.remember({ text, credential, expiresAtMs });
    return credential;
  }

  /** Keeps a token that the settings do not hold themselves, if it would be found again. */
  #rememberAgain(known: KnownToken): void {
    const { text, expiresAtMs } = known;
    if (this.#table.get(text) !== undefined) return;
    const jwt = this.#jwts.get(text);
    const caller =
      jwt === undefined ? this.#callerOfDigest.get(digestOf(text)) : this.#callerOfJwt(jwt);
    if (caller === undefined || caller !== known.credential.caller) this.#jwts.delete(text);
    else this.#remember(known, text, caller, expiresAtMs);
  }

  #callerOfJwt({ issuer, subject, kid, keyText }: CheckedJwt): Caller | undefined {
    const isSameKey = this.#feeds.get(issuer)?.keyText(kid) === keyText;
    return isSameKey ? this.#callerOfSubject.get(subjectKey(issuer, subject)) : undefined;
  }

  #revokeMissing(before: CredentialTable): void {
    for (const { text, credential } of before.values()) {
      if (this.#table.get(text)?.credential !== credential) credential.revoke();
    }
  }

  #setFeeds(): void {
    const before = this.#feeds;
    this.#feeds = new Map();
    for (const definition of this.#file.issuers) {
      const known = before.get(definition.issuer);
      const isSame = JSON.stringify(known?.definition) === JSON.stringify(definition);
      const feed = known !== undefined && isSame ? known : this.#newFeed(definition);
      this.#feeds.set(definition.issuer, feed);
      if (feed !== known && this.#isStarted) feed.start();
    }
    for (const [issuer, feed] of before) {
      if (this.#feeds.get(issuer) !== feed) void feed.stop();
    }
  }

  #newFeed(definition: IssuerDefinition): JwksFeed {
    return new JwksFeed({
      definition,
      // Keys that are gone take with them what they proved (C4).
      onChanged: () => this.#install(),
      onFetched: (problem) => this.#options.onKeysFetched(definition.issuer, problem),
    });
  }

  #learn(text: string, caller: Caller, expiresAtMs: number): Credential {
    return this.#remember(this.#table.get(text), text, caller, expiresAtMs);
  }

  #check(token: string): Promise<Credential | null> {
    const underWay = this.#checks.get(token);
    if (underWay !== undefined) return underWay;
    if (this.#checks.size >= CHECKS_MAX) {
      const text = `${CHECKS_MAX} tokens are being checked already`;
      return Promise.reject(
        new AppError<AuthzReason>('RATE_LIMITED', text, { limit: String(CHECKS_MAX) }),
      );
    }
    const check = checkJwt(token, (issuer) => this.#feeds.get(issuer))
      .then((checked) => (checked === null ? null : this.#took(token, checked)))
      .finally(() => this.#checks.delete(token));
    this.#checks.set(token, check);
    return check;
  }

  #took(text: string, checked: CheckedJwt): Credential | null {
    // Keys or callers may have changed while it was checked.
    const caller = this.#callerOfJwt(checked);
    if (caller === undefined || checked.expiresAtMs <= Date.now()) return null;
    if (this.#jwts.size >= JWTS_MAX) this.#dropExpired();
    for (const oldest of this.#jwts.keys()) {
      if (this.#jwts.size < JWTS_MAX) break;
      this.#drop(oldest);
    }
    this.#jwts.set(text, { ...checked, text });
    return this.#learn(text, caller, checked.expiresAtMs);
  }

  #dropExpired(): void {
    const nowMs = Date.now();
    for (const { text, expiresAtMs } of this.#jwts.values()) {
      if (expiresAtMs <= nowMs) this.#drop(text);
    }
  }

  /** Streams that it opened end with it. */
  #drop(text: string): void {
    const known = this.#table.get(text);
    this.#jwts.delete(text);
    this.#table.delete(text);
    known?.credential.revoke();
  }
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

function subjectKey(issuer: string, subject: string): string {
  return JSON.stringify([issuer, subject]);
}
