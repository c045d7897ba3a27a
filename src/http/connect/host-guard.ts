import type { IncomingHttpHeaders } from 'node:http2';
import type { AppError } from '../../shared/app-error.ts';
import { refuseExchange } from '../exchange/exchange-sink.ts';
import { type HostGuard, hostRefused } from '../exchange/host-guard.ts';
import { refuseStream } from '../exchange/stream-sink.ts';
import { headerText } from '../header-text.ts';
import type { HostAllowList } from '../host-allow-list.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import { refusal } from './adapter-refusal.ts';
import type { ConnectErrors } from './protocol/connect-errors.ts';
import { envelopedWireOf } from './protocol/wire.ts';

/**
 * Makes a guard that refuses calls not addressed to `hosts` as permission_denied, in the protocol of the call. `onIncident`
 * gets the name, so that an operator finds `setting`, which admits more.
 */
export function createHostGuard(
  hosts: HostAllowList,
  setting: string,
  errors: ConnectErrors,
  onIncident: (event: string, detail: string) => void,
): HostGuard {
  const refused = (host: string): AppError => hostRefused(host, setting, onIncident);
  return {
    hosts,
    refuse: (exchange) => {
      const requestId = requestIdOf(exchange.header(REQUEST_ID_HEADER));
      const contentType = exchange.header('content-type');
      const error = refused(exchange.header('host'));
      // HTTP/1.1 has no trailers that could carry the status to a gRPC client.
      if (envelopedWireOf(contentType)?.protocol === 'grpc')
        errors.sendConnectError(exchange, error, requestId);
      else refuseExchange(exchange, refusal(contentType, error, errors), requestId);
    },
    refuseStream: (stream, headers) => {
      const requestId = requestIdOf(headerText(headers[REQUEST_ID_HEADER]));
      const contentType = headers['content-type'] ?? '';
      const error = refused(authorityOf(headers));
      refuseStream(stream, refusal(contentType, error, errors), requestId);
    },
  };
}

function authorityOf(headers: IncomingHttpHeaders): string {
  return headers[':authority'] ?? headers.host ?? '';
}
