import { isIP } from 'node:net';
import { createAuthenticator, type Authenticator } from '../../../http/service-tokens.ts';
import { AppError } from '../../../shared/app-error.ts';
import { isLoopback, type RunnerSettings } from '../../settings/settings.ts';
import { headerOf } from './call.ts';

type AccessSettings = Pick<RunnerSettings, 'host' | 'allowedHosts' | 'allowedOrigins' | 'apiToken'>;

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
/** Ports that a Host header leaves out. */
const DEFAULT_PORTS: ReadonlySet<number> = new Set([80, 443]);

type HostEntry = { readonly name: string; readonly port: number | undefined };

/**
 * Who may call (design §2.10 and §6). A page cannot forge Host, Origin and Sec-Fetch-Site; the Host
 * list stops DNS rebinding, the origin list narrows which pages may call, the token everybody else.
 */
export class Access {
  readonly #hosts: readonly HostEntry[];
  readonly #origins: ReadonlySet<string> | undefined;
  readonly #authenticator: Authenticator;
  readonly #isWide: boolean;

  constructor(settings: AccessSettings) {
    this.#hosts = settings.allowedHosts.map(hostEntryFromText);
    this.#origins = settings.allowedOrigins.includes('*')
      ? undefined
      : new Set(settings.allowedOrigins.map((origin) => origin.toLowerCase()));
    this.#authenticator = createAuthenticator(
      settings.apiToken === undefined ? [] : [settings.apiToken],
    );
    this.#isWide = !isLoopback(settings.host);
  }

  /** Errors: HOST_NOT_ALLOWED unless Host names this service at `port`. */
  requireHost(headers: Headers, port: number): void {
    const host = hostEntryFromText(headerOf(headers, 'host'));
    const isOwnPort = host.port === port || (host.port === undefined && DEFAULT_PORTS.has(port));
    if (isOwnPort && this.#isOwnName(host.name)) return;
    const isListed = this.#hosts.some((entry) => {
      if (entry.name !== host.name) return false;
      if (entry.port === undefined) return isOwnPort;
      return entry.port === host.port || (host.port === undefined && DEFAULT_PORTS.has(entry.port));
    });
    if (!isListed) throw new AppError('HOST_NOT_ALLOWED', 'the Host header names another service');
  }

  /**
   * Errors: ORIGIN_NOT_ALLOWED for a page that is not on the list. The service's own page always is;
   * a request that a browser marks as cross-site but sends without Origin (an image, a link) is not.
   */
  requireOrigin(headers: Headers, isApi: boolean): void {
    if (this.#origins === undefined) return;
    const origin = headerOf(headers, 'origin').toLowerCase();
    const isOwn = origin === `http://${headerOf(headers, 'host').toLowerCase()}`;
    const site = headerOf(headers, 'sec-fetch-site');
    const isHidden = origin === '' && isApi && (site === 'cross-site' || site === 'same-site');
    if (isHidden || (origin !== '' && !isOwn && !this.#origins.has(origin))) {
      throw new AppError('ORIGIN_NOT_ALLOWED', 'this origin may not call the runner');
    }
  }

  /**
   * CORS headers of an answer to a request that passed `requireOrigin`. Without a list every origin
   * may read; credentials are never allowed, so that `*` exposes nothing of the caller's own.
   */
  corsHeaders(headers: Headers): string[] {
    const origin = headerOf(headers, 'origin');
    if (this.#origins === undefined) {
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

  /** What a preflight is answered beyond `corsHeaders`. */
  preflightHeaders(headers: Headers): string[] {
    const answer = [
      'access-control-allow-methods',
      ALL_METHODS,
      'access-control-allow-headers',
      REQUEST_HEADERS,
      'access-control-max-age',
      PREFLIGHT_SECONDS,
    ];
    if (headerOf(headers, 'access-control-request-private-network') === 'true') {
      answer.push('access-control-allow-private-network', 'true');
    }
    return answer;
  }

  /**
   * `queryToken` is that of `?access_token=`, where it is allowed.
   * Errors: UNAUTHORIZED without the token. Time tells nothing about how much of a guess was right.
   */
  requireToken(headers: Headers, queryToken: string | null): void {
    if (this.#authenticator.accepts(headerOf(headers, 'authorization'))) return;
    if (queryToken !== null && this.#authenticator.accepts(`Bearer ${queryToken}`)) return;
    throw new AppError('UNAUTHORIZED', 'a valid API token is needed');
  }

  /** Loopback names and addresses; all addresses too once others may connect: nobody can rebind one. */
  #isOwnName(name: string): boolean {
    if (name === 'localhost' || name.endsWith('.localhost') || isLoopback(name)) return true;
    return this.#isWide && isIP(name) !== 0;
  }
}

/** Name in lower case without brackets, port undefined when there is none; name '' for what is no host. */
function hostEntryFromText(text: string): HostEntry {
  const parts = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text);
  if (parts === null) return { name: '', port: -1 };
  const name = (parts[1] ?? parts[2] ?? '').toLowerCase().replace(/\.$/, '');
  return { name, port: parts[3] === undefined ? undefined : Number(parts[3]) };
}
