import { encodeEnvelope } from '@connectrpc/connect/protocol';
import {
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
} from '@connectrpc/connect/protocol-connect';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import type { AppError } from '../../shared/app-error.ts';
import { BytesBody } from './messages/adapter-body.ts';
import type { ConnectErrors } from './protocol/connect-errors.ts';
import { isConnectStream, isGrpc, isGrpcWeb } from './protocol/content-types.ts';
import { grpcTrailerOf } from './protocol/grpc-trailer.ts';
import type { UniversalResponse } from './protocol/universal.ts';

const endStream = createEndStreamSerialization(ANSWER_JSON);

/**
 * An error for a call that never reaches a handler (no credential, unknown method), in the protocol
 * that its content type names; anything that is not a streaming protocol gets the JSON of Connect.
 */
export function refusal(
  contentType: string,
  error: AppError,
  { connectErrorFromAppError, httpStatusOfReason }: ConnectErrors,
): UniversalResponse {
  const shown = connectErrorFromAppError(error);
  if (isGrpcWeb(contentType)) {
    const frame = encodeEnvelope(trailerFlag, trailerSerialize(grpcTrailerOf(shown)));
    return { status: 200, header: headerOf(contentType), body: bodyOf(frame) };
  }
  if (isGrpc(contentType)) {
    const header = headerOf(contentType);
    return { status: 200, header, body: bodyOf(new Uint8Array(0)), trailer: grpcTrailerOf(shown) };
  }
  if (isConnectStream(contentType) && error.reason !== 'METHOD_UNKNOWN') {
    const data = endStream.serialize({ error: shown, metadata: new Headers() });
    const body = bodyOf(encodeEnvelope(endStreamFlag, data));
    return { status: 200, header: headerOf(contentType), body };
  }
  const body = bodyOf(errorToJsonBytes(shown, ANSWER_JSON));
  return { status: httpStatusOfReason(error.reason), header: headerOf('application/json'), body };
}

function headerOf(contentType: string): Headers {
  return new Headers({ 'content-type': contentType });
}

function bodyOf(bytes: Uint8Array): BytesBody {
  return new BytesBody(bytes);
}
