import { AppError } from '../../../shared/app-error.ts';
import type { ConnectReason } from './connect-reason.ts';

/** Of the Connect protocol alone: gRPC and gRPC-Web do not know it. */
export const VERSION_HEADER = 'connect-protocol-version';

/** Hot. Whether a request that states `version` ('' for none) speaks the protocol that we speak. */
export function isKnownVersion(version: string): boolean {
  return version === '' || version === '1';
}

/**
 * Refuses a call in another version of the Connect protocol, as Connect's Go library does; that of
 * TypeScript does so only where it also demands the header, which plain HTTP clients leave out.
 * Errors: BODY_MALFORMED.
 */
export function assertKnownVersion(headers: Headers): void {
  if (isKnownVersion(headers.get(VERSION_HEADER) ?? '')) return;
  throw new AppError<ConnectReason>('BODY_MALFORMED', 'Connect-Protocol-Version must be 1');
}
