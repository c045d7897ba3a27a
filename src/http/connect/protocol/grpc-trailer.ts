import type { ConnectError, HandlerContext } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { withoutTrailing } from '../../../shared/without-trailing.ts';

const MESSAGE = 'grpc-message';
/** What is escaped: `%`, whatever is not printable ASCII, and a space at the beginning, which a header field would lose. */
const ESCAPED = /[^\x20-\x24\x26-\x7e]+|^ +/g;
const utf8 = new TextEncoder();

/**
 * A text as `grpc-message` has it: the bytes of its UTF-8 outside of 0x20-0x7E and `%` as `%XX` (PROTOCOL-HTTP2.md of gRPC,
 * Percent-Encoded). Half a surrogate pair becomes U+FFFD. Spaces at either end are
 * escaped. Never throws; O(length).
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
 * Trailers of gRPC and gRPC-Web in which `grpc-message` is escaped as the specification has it. Connect's own code escapes it as
 * `encodeURIComponent` does, `:` and `/` too; clients that read with `decodeURI`, @grpc/grpc-js among them, show those as they came.
 */
function grpcTrailer(from?: Headers): Headers {
  const trailer = new Headers(from);
  const set = trailer.set.bind(trailer);
  const setEscaped = (name: string, value: string): void => {
    set(name, name.toLowerCase() === MESSAGE ? grpcMessageOf(decodeURIComponent(value)) : value);
  };
  return Object.assign(trailer, { set: setEscaped });
}

/** The status of a failed call as name and value: grpc-status, grpc-message, grpc-status-details-bin. The text must be well-formed. */
export function grpcTrailerOf(error: ConnectError): Headers {
  return setTrailerStatus(grpcTrailer(), error);
}

/** Has a handler of Connect write into such trailers; given to those of gRPC and gRPC-Web as the gate that each request passes first. */
export function useGrpcTrailer(context: HandlerContext): void {
  (context as { responseTrailer: Headers }).responseTrailer = grpcTrailer(context.responseTrailer);
}
