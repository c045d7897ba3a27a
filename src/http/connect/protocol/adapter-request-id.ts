import { createContextKey } from '@connectrpc/connect';

/** Finds the request id in `HandlerContext.values` and `request.contextValues`. */
export const kRequestId = createContextKey<string>('', { description: 'request id' });
