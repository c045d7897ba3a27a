import type { IncomingHttpHeaders } from 'node:http2';
import type { HostAllowList } from '../../http/host-allow-list.ts';
import type { HostGuard } from '../../http/host-guard.ts';
import { requestIdOf } from '../../http/request-id.ts';
import { AppError } from '../../shared/app-error.ts';
import { respondToExchange } from './adapter-http1.ts';
import { refuseStream } from './adapter-http2.ts';
import { refusal } from './adapter-refusal.ts';
import { sendConnectError } from './connect-error.ts';
import type { ConnectReason } from './connect-reason.ts';

/** Of a name in the log: whoever calls chooses it. */
const SHOWN_LENGTH_MAX = 100;

/**
 * Refuses what is not addressed to `hosts` as permission_denied, in the protocol of the call.
 * `onIncident` is told the name, so that an operator finds the setting to change.
 */
export function createHostGuard(
  hosts: HostAllowList,
  onIncident: (event: string, detail: string) => void,
): HostGuard {
  const refused = (host: string): AppError<ConnectReason> => {
    onIncident('host_refused', host.slice(0, SHOWN_LENGTH_MAX));
    return new AppError<ConnectReason>(
      'HOST_NOT_ALLOWED',
      'the request is not addressed to a name of this service; service tokens or GATEWAY_ALLOWED_HOSTS admit more',
    );
  };
  return {
    hosts,
    refuse: (exchange) => {
      const requestId = requestIdOf(exchange.header('x-request-id'));
      const contentType = exchange.header('content-type');
      const error = refused(exchange.header('host'));
      // Over HTTP/1.1 there are no trailers to tell a gRPC client.
      if (isGrpc(contentType)) sendConnectError(exchange, error, requestId);
      else void respondToExchange(exchange, refusal(contentType, error), requestId, true);
    },
    refuseStream: (stream, headers) => {
      const requestId = requestIdOf(textOf(headers['x-request-id']));
      const contentType = headers['content-type'] ?? '';
      const error = refused(authorityOf(headers));
      void refuseStream(stream, refusal(contentType, error), requestId);
    },
  };
}

function authorityOf(headers: IncomingHttpHeaders): string {
  return headers[':authority'] ?? headers.host ?? '';
}

function isGrpc(contentType: string): boolean {
  return (
    contentType.startsWith('application/grpc') && !contentType.startsWith('application/grpc-web')
  );
}

function textOf(value: string | string[] | undefined): string {
  return typeof value === 'string' ? value : (value?.join(', ') ?? '');
}
