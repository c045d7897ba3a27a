import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';

/**
 * Connect over HTTP/2, with one connection for all calls, for `ClientOptions.transport`. The streams of imports need it:
 * `fetch` cannot send a body in parts. Needs the package @connectrpc/connect-node.
 */
export function http2Transport({
  baseUrl,
  interceptors,
}: {
  readonly baseUrl: string;
  readonly interceptors: Interceptor[];
}): Transport {
  return createConnectTransport({ baseUrl, interceptors, httpVersion: '2' });
}
