import type { UniversalHandler } from '@connectrpc/connect/protocol';

/** A request as Connect's handlers take it, whatever carried it. */
export type UniversalRequest = Parameters<UniversalHandler>[0];
/** An answer as Connect's handlers give it. */
export type UniversalResponse = Awaited<ReturnType<UniversalHandler>>;
