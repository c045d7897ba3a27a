import { Code, ConnectError, type Interceptor, type Transport } from '@connectrpc/connect';
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
  return createConnectTransport({
    baseUrl,
    interceptors: [...interceptors, lostIsUnavailable],
    httpVersion: '2',
  });
}

/** connect-node takes a connection that is closed before the answer for a call that its caller gave up. */
const lostIsUnavailable: Interceptor = (next) => async (request) => {
  const errorOf = (thrown: unknown): unknown => {
    if (!(thrown instanceof ConnectError) || thrown.code !== Code.Canceled) return thrown;
    // The service gives a reason with its errors.
    const isLost = !request.signal.aborted && thrown.details.length === 0;
    return isLost
      ? new ConnectError('the connection was lost', Code.Unavailable, undefined, undefined, thrown)
      : thrown;
  };
  try {
    const response = await next(request);
    return response.stream
      ? { ...response, message: messagesOf(response.message, errorOf) }
      : response;
  } catch (thrown) {
    throw errorOf(thrown);
  }
};

async function* messagesOf<Message>(
  messages: AsyncIterable<Message>,
  errorOf: (thrown: unknown) => unknown,
): AsyncGenerator<Message> {
  try {
    yield* messages;
  } catch (thrown) {
    throw errorOf(thrown);
  }
}
