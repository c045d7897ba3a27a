import type { ConnectError } from '@connectrpc/connect';
import { encodeEnvelope, type UniversalHandler } from '@connectrpc/connect/protocol';
import {
  createEndStreamSerialization,
  endStreamFlag,
  errorToJsonBytes,
} from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerSerialize } from '@connectrpc/connect/protocol-grpc-web';
import type { AppError } from '../../shared/app-error.ts';
import { BytesBody } from './adapter-body.ts';
import type { ErrorPolicy } from './adapter-guard.ts';
import { connectErrorFromAppError, ERROR_JSON, httpStatusOfReason } from './connect-error.ts';

type UniversalResponse = Awaited<ReturnType<UniversalHandler>>;

const endStream = createEndStreamSerialization(ERROR_JSON);

/**
 * An error for a call that never reaches a handler (no credential, unknown method), in the protocol
 * that its content type names; anything that is not a streaming protocol gets the JSON of Connect.
 */
export function refusal(
  contentType: string,
  error: AppError,
  present: ErrorPolicy['present'] = connectErrorFromAppError,
): UniversalResponse {
  const shown = present(error);
  if (contentType.startsWith('application/grpc-web')) {
    const frame = encodeEnvelope(trailerFlag, trailerSerialize(trailerOf(shown)));
    return { status: 200, header: headerOf(contentType), body: bodyOf(frame) };
  }
  if (contentType.startsWith('application/grpc')) {
    const header = headerOf(contentType);
    return { status: 200, header, body: bodyOf(new Uint8Array(0)), trailer: trailerOf(shown) };
  }
  if (contentType.startsWith('application/connect+') && error.reason !== 'METHOD_UNKNOWN') {
    const data = endStream.serialize({ error: shown, metadata: new Headers() });
    const body = bodyOf(encodeEnvelope(endStreamFlag, data));
    return { status: 200, header: headerOf(contentType), body };
  }
  const body = bodyOf(errorToJsonBytes(shown, ERROR_JSON));
  return { status: httpStatusOfReason(error.reason), header: headerOf('application/json'), body };
}

function trailerOf(error: ConnectError): Headers {
  const trailer = new Headers();
  setTrailerStatus(trailer, error);
  return trailer;
}

function headerOf(contentType: string): Headers {
  return new Headers({ 'content-type': contentType });
}

function bodyOf(bytes: Uint8Array): BytesBody {
  return new BytesBody(bytes);
}
