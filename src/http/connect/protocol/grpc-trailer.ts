import type { ConnectError } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { withoutTrailing } from '../../../shared/text/without-trailing.ts';

/**
 * Characters that are escaped: `%`, all but printable ASCII, and spaces at the beginning, which a header field would lose.
 */
const ESCAPED = /[^\x20-\x24\x26-\x7e]+|^ +/g;
const utf8 = new TextEncoder();

/**
 * Escapes a text for `grpc-message`: the bytes of its UTF-8 outside of 0x20-0x7E and `%` become `%XX` (PROTOCOL-HTTP2.md of
 * gRPC, Percent-Encoded). Half a surrogate pair becomes U+FFFD. Spaces at either end are escaped. Never throws; O(length).
 */
export function grpcMessageOf(text: string): string {
  const whole = text.replace(ESCAPED, (part) => {
    let escaped = '';
    for (const byte of utf8.encode(part)) {
      escaped += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    }
    return escaped;
  });
  const kept = withoutTrailing(whole, ' ');
  return kept + '%20'.repeat(whole.length - kept.length);
}

/**
 * Puts the status of a call into its trailer and returns it: grpc-status, and for an error grpc-message and
 * grpc-status-details-bin. Connect's own code escapes a message as `encodeURIComponent` does, `:` and `/` too. Clients that
 * read with `decodeURI`, @grpc/grpc-js among them, show those as they came. The text of the error must be well-formed.
 */
export function setGrpcStatus(trailer: Headers, error?: ConnectError): Headers {
  setTrailerStatus(trailer, error);
  if (error !== undefined) trailer.set('grpc-message', grpcMessageOf(error.rawMessage));
  return trailer;
}
