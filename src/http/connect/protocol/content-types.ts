import { mediaTypeOf } from '../../header-text.ts';

const GRPC = 'application/grpc';
const GRPC_WEB = 'application/grpc-web';
const CONNECT_STREAM = 'application/connect+';
const UNARY_TYPES = ['application/json', 'application/proto'];
/** Names the types of unary calls of Connect, as the header Accept-Post does. */
export const UNARY_TYPES_TEXT = UNARY_TYPES.join(', ');

/** Whether a content type is of gRPC over HTTP/2, whose answers end with trailers. */
export function isGrpc(contentType: string): boolean {
  return contentType.startsWith(GRPC) && !contentType.startsWith(GRPC_WEB);
}

/** Whether a content type is of gRPC-Web. */
export function isGrpcWeb(contentType: string): boolean {
  return contentType.startsWith(GRPC_WEB);
}

/** Whether a content type is of gRPC or gRPC-Web, which state times and encodings in headers of their own. */
export function isGrpcFamily(contentType: string): boolean {
  return contentType.startsWith(GRPC);
}

/** Whether a content type is of a stream of Connect. */
export function isConnectStream(contentType: string): boolean {
  return contentType.startsWith(CONNECT_STREAM);
}

/** Whether messages of a content type come in envelopes. */
export function hasEnvelopes(contentType: string): boolean {
  return isGrpcFamily(contentType) || isConnectStream(contentType);
}

/** The content type of a unary call without its parameters and in lower case; any other type as it is. */
export function plainUnaryType(contentType: string): string {
  const type = mediaTypeOf(contentType);
  return UNARY_TYPES.includes(type) ? type : contentType;
}
