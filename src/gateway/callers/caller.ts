import { createContextKey } from '@connectrpc/connect';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import type { TokenBucket } from '../../shared/token-bucket.ts';
import { CallerScopes } from './caller-scopes.ts';
import type { MethodRule, TargetedRule } from './method-rules.ts';

/** Counts of the calls of a caller, reported as metrics. */
export type CallCounts = { accepted: number; rateLimited: number; outOfScope: number };

/** A caller: a name, what it may reach, and how often. */
export class Caller {
  readonly name: string;
  readonly scopes: CallerScopes;
  readonly counts: CallCounts;
  /** Absent where the rate has no limit. */
  bucket: TokenBucket | undefined;

  constructor(
    name: string,
    scopes: CallerScopes,
    counts: CallCounts,
    bucket: TokenBucket | undefined,
  ) {
    this.name = name;
    this.scopes = scopes;
    this.counts = counts;
    this.bucket = bucket;
  }

  /** Hot. Whether one more call is within the rate; it is not counted. */
  canAcquire(): boolean {
    return this.bucket === undefined || this.bucket.canAcquire(performance.now());
  }

  /** Hot. Counts a call, and returns whether it is within the rate. */
  admits(): boolean {
    if (this.bucket !== undefined && !this.bucket.tryAcquire(performance.now())) {
      this.counts.rateLimited += 1;
      return false;
    }
    this.counts.accepted += 1;
    return true;
  }

  /** Why a request is refused for where it goes, or null. */
  refusal<Request>(rule: TargetedRule<Request>, request: Request): AppError | null {
    return this.scopes.admit(rule, rule.targetOf(request)) ? null : this.#refused(rule);
  }

  /** Hot. The error that refuses every request of a method, whatever it reaches; null where it depends on the request. */
  refusalAnywhere(rule: MethodRule): AppError | null {
    return this.scopes.admitAnywhere(rule) ? null : this.#refused(rule);
  }

  #refused(rule: MethodRule): AppError {
    this.counts.outOfScope += 1;
    return scopeRefused(this.name, rule);
  }
}

/** One proof of who calls, while it counts: a token, or a JWT until it expires. */
export class Credential {
  readonly caller: Caller;
  readonly #revocation = new AbortController();

  constructor(caller: Caller) {
    this.caller = caller;
  }

  /** Aborts with CREDENTIAL_REVOKED: streams that it opened end. */
  get revoked(): AbortSignal {
    return this.#revocation.signal;
  }

  revoke(): void {
    this.#revocation.abort(
      new AppError<AuthzReason>(
        'CREDENTIAL_REVOKED',
        'the credential of this stream is no longer valid, or its scopes have changed',
      ),
    );
  }
}

/** The credential of a caller, or the error that refuses it. */
export type AuthorizeResult = Credential | AppError;

/** Finds the caller of a method; a promise where the credential was not presented before. */
export type Authorize = (
  path: string,
  header: (lowerCaseName: string) => string,
) => AuthorizeResult | Promise<AuthorizeResult>;

/** Hot. Finds the credential that an `Authorization` header carries. */
export interface CredentialSource {
  /** null: none that is known by now. `header` is the whole value, '' when absent. */
  peek(header: string): Credential | null;
}

/** The credential of a call that nobody authenticated: it may reach nothing. */
export const NOBODY = new Credential(
  new Caller(
    '',
    new CallerScopes([], ''),
    { accepted: 0, rateLimited: 0, outOfScope: 0 },
    undefined,
  ),
);

/** Finds who calls in `HandlerContext.values` and `request.contextValues`. */
export const kCredential = createContextKey<Credential>(NOBODY, { description: 'credential' });

/** The error of a call beyond the scopes of its caller; it shows nothing of what is stored there. */
export function scopeRefused(caller: string, rule: MethodRule): AppError {
  const { service, method, needs } = rule;
  return new AppError<AuthzReason>(
    'SCOPE_REFUSED',
    `no scope of ${caller} lets it call ${service}/${method} (${needs.join(' and ')}) there`,
    { caller, method: `${service}/${method}` },
  );
}

/** The error of a call beyond the rate of its caller. */
export function rateLimited(caller: string): AppError {
  return new AppError<AuthzReason>('RATE_LIMITED', `${caller} makes more calls than it may`, {
    caller,
  });
}
