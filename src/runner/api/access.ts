import { HostAllowList } from '../../http/host-allow-list.ts';
import { createAuthenticator, type Authenticator } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import { headerOf } from './call.ts';
import { OriginPolicy, type OriginKind } from './origin-policy.ts';

type AccessSettings = Pick<RunnerSettings, 'host' | 'allowedHosts' | 'allowedOrigins' | 'apiToken'>;

/** What Access asks of the rest of the runner. */
export type AccessPorts = {
  /** The token that opens everything: that of the settings, else the one of the state directory. */
  readonly apiToken: string;
  /** Must whoever changes something show the token now, from wherever the call comes? */
  readonly isTokenDemanded: () => boolean;
};

const ALL_METHODS = 'GET, HEAD, POST, PUT, DELETE, OPTIONS';
const REQUEST_HEADERS = [
  'Content-Type',
  'Authorization',
  'Last-Event-ID',
  'Idempotency-Key',
  'If-None-Match',
  'Range',
  'If-Range',
  'X-Request-Id',
  'X-Host-Signature-256',
  'X-Host-Delivery',
  'X-Host-Event',
].join(', ');
const EXPOSED_HEADERS = [
  'Content-Disposition',
  'Content-Length',
  'Content-Range',
  'Accept-Ranges',
  'ETag',
  'Idempotent-Replayed',
  'Location',
  'Retry-After',
  'X-Request-Id',
  'X-Runner-Api-Version',
  'X-Runner-Warning',
  'X-Synced-At',
].join(', ');
const PREFLIGHT_SECONDS = '600';
/** Methods that change nothing, whatever their path (RFC 9110 §9.2.1). As sent: `get` is none of them. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Origins whose pages may reach into this machine's network; a wild card is not enough for that. */
const NEAR: ReadonlySet<OriginKind> = new Set<OriginKind>(['own', 'loopback', 'listed']);

/**
 * Who may call (docs/runner.md, "Who may call"). A page cannot forge Host, Origin and Sec-Fetch-Site;
 * the Host list stops DNS rebinding; reading is open to every origin, changing only to those that are near, and
 * to whoever has the token.
 */
export class Access {
  readonly #hosts: HostAllowList;
  readonly #origins: OriginPolicy;
  readonly #authenticator: Authenticator;
  readonly #isTokenSet: boolean;
  readonly #isTokenDemanded: () => boolean;

  constructor(settings: AccessSettings, { apiToken, isTokenDemanded }: AccessPorts) {
    this.#hosts = new HostAllowList(settings);
    this.#origins = new OriginPolicy(settings.allowedOrigins);
    assert(apiToken !== '', "an empty token would be everybody's");
    this.#authenticator = createAuthenticator([apiToken]);
    this.#isTokenSet = settings.apiToken !== undefined;
    this.#isTokenDemanded = isTokenDemanded;
  }

  /** Errors: HOST_NOT_ALLOWED unless Host names this service at `port`. */
  requireHost(headers: Headers, port: number): void {
    if (this.#hosts.accepts(headerOf(headers, 'host'), port)) return;
    throw new AppError('HOST_NOT_ALLOWED', 'the Host header names another service');
  }

  /**
   * Errors: ORIGIN_NOT_ALLOWED, when there is a list of origins, for every other page. A link or an image
   * of such a page, sent without Origin, may show the pages of the runner, but nothing below /api.
   */
  requireOrigin(headers: Headers, isApi: boolean): void {
    if (!this.#origins.isClosed || this.#origins.kindOf(headers) !== 'foreign') return;
    if (!isApi && headers.get('origin') === null) return;
    throw new AppError('ORIGIN_NOT_ALLOWED', 'this origin may not call the runner');
  }

  /**
   * CORS headers of an answer to a request that passed `requireOrigin`. Without a list every origin
   * may read; credentials are never allowed, so that `*` exposes nothing of the caller's own.
   */
  corsHeaders(headers: Headers): string[] {
    const origin = headerOf(headers, 'origin');
    if (!this.#origins.isClosed) {
      return ['access-control-allow-origin', '*', 'access-control-expose-headers', EXPOSED_HEADERS];
    }
    if (origin === '') return ['vary', 'Origin'];
    return [
      'access-control-allow-origin',
      origin,
      'vary',
      'Origin',
      'access-control-expose-headers',
      EXPOSED_HEADERS,
    ];
  }

  /**
   * What a preflight is answered beyond `corsHeaders`: the same for every page, but that a foreign one is
   * never let into the private network, so that a browser that asks first sends no request of it at all.
   */
  preflightHeaders(headers: Headers): string[] {
    const answer = [
      'access-control-allow-methods',
      ALL_METHODS,
      'access-control-allow-headers',
      REQUEST_HEADERS,
      'access-control-max-age',
      PREFLIGHT_SECONDS,
    ];
    const isAsked = headerOf(headers, 'access-control-request-private-network') === 'true';
    if (isAsked && NEAR.has(this.#origins.kindOf(headers))) {
      answer.push('access-control-allow-private-network', 'true');
    }
    return answer;
  }

  /**
   * The token, where this call needs one: every call below /api when it is set, else what would change
   * something and comes from a foreign page, or from anybody while it is demanded. `queryToken` is that of
   * `?access_token=`, where it is allowed. Time says nothing about how much of a guess was right.
   * Errors: UNAUTHORIZED, ORIGIN_NEEDS_TOKEN.
   */
  requireToken(method: string, headers: Headers, queryToken: string | null, isApi: boolean): void {
    const isSafe = SAFE_METHODS.has(method);
    const isSetHere = this.#isTokenSet && isApi;
    if ((isSafe && !isSetHere) || this.#hasToken(headers, queryToken)) return;
    if (isSetHere) throw new AppError('UNAUTHORIZED', 'a valid API token is needed');
    if (this.#isTokenDemanded()) {
      const problem = 'whatever changes something needs the API token for now';
      throw new AppError('UNAUTHORIZED', problem);
    }
    if (this.#origins.isOpen || this.#origins.kindOf(headers) !== 'foreign') return;
    const problem = 'a page of another origin may change nothing without the API token';
    throw new AppError('ORIGIN_NEEDS_TOKEN', problem);
  }

  #hasToken(headers: Headers, queryToken: string | null): boolean {
    if (this.#authenticator.accepts(headerOf(headers, 'authorization'))) return true;
    return queryToken !== null && this.#authenticator.accepts(`Bearer ${queryToken}`);
  }
}
