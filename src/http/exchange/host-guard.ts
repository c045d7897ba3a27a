import type { IncomingHttpHeaders } from 'node:http2';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import type { HostAllowList } from '../host-allow-list.ts';
import type { Http2StreamHandler } from '../http2/http2-listener.ts';
import type { Http2RequestStream } from '../http2/request-stream.ts';
import type { HttpExchange } from './http-exchange.ts';

/** Characters of a host name in the log: callers choose it. */
const SHOWN_LENGTH_MAX = 100;

/**
 * Host names that a listener answers for, and the refusals of other requests. Applied before anything else sees a request.
 */
export type HostGuard = {
  readonly hosts: HostAllowList;
  /** Answers a request of HTTP/1.1 with a refusal. */
  readonly refuse: (exchange: HttpExchange) => void;
  /** Answers a request of HTTP/2 with a refusal; required where HTTP/2 is served. */
  readonly refuseStream?:
    | ((stream: Http2RequestStream, headers: IncomingHttpHeaders) => void)
    | undefined;
};

/**
 * Whether a request of HTTP/2 is addressed to one of `hosts`. `:authority` takes the place of Host. A request that has both
 * must be right in both (RFC 9113 §8.3.1: they must not differ); one with neither is refused.
 */
function isStreamAccepted(hosts: HostAllowList, headers: IncomingHttpHeaders): boolean {
  const { ':authority': authority, host } = headers;
  if (authority === undefined) return hosts.accepts(host ?? '', undefined);
  if (!hosts.accepts(authority, undefined)) return false;
  return host === undefined || host === authority || hosts.accepts(host, undefined);
}

/**
 * Makes the error of a request that is addressed to `host`, which is not a name of this service. `onIncident` gets the name,
 * so that an operator finds `setting`, which admits more.
 */
export function hostRefused(
  host: string,
  setting: string,
  onIncident: (event: string, detail: string) => void,
): AppError<SharedReason> {
  onIncident('host_refused', host.slice(0, SHOWN_LENGTH_MAX));
  return new AppError<SharedReason>(
    'HOST_NOT_ALLOWED',
    `the request is not addressed to a name of this service; service tokens or ${setting} admit more`,
  );
}

/** Wraps `onStream` in the guard; returns it unchanged where there is no guard. */
export function guardedStreams(
  onStream: Http2StreamHandler,
  hostGuard: HostGuard | undefined,
): Http2StreamHandler {
  if (hostGuard === undefined) return onStream;
  const { hosts, refuseStream } = hostGuard;
  assert(refuseStream !== undefined, 'a guard of HTTP/2 can refuse its streams');
  return (stream, headers, deadlines) => {
    if (isStreamAccepted(hosts, headers)) onStream(stream, headers, deadlines);
    else refuseStream(stream, headers);
  };
}
