import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import type { AppError } from '../../shared/app-error.ts';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import type { ConnectErrors } from './protocol/connect-errors.ts';
import { envelopedWireOf } from './protocol/wire.ts';

const NO_BYTES = new Uint8Array(0);

/**
 * Makes the answer to a call that never reaches a handler (no credential, unknown method). It has the protocol that the
 * content type names; all but streaming protocols get the JSON of Connect.
 */
export function refusal(
  contentType: string,
  error: AppError,
  { connectErrorFromAppError, httpStatusOfReason }: ConnectErrors,
): HttpAnswer {
  const shown = connectErrorFromAppError(error);
  const wire = envelopedWireOf(contentType);
  // A method that does not exist has no streams either.
  if (wire === undefined || (wire.protocol === 'connect' && error.reason === 'METHOD_UNKNOWN')) {
    const body = errorToJsonBytes(shown, ANSWER_JSON);
    const header = new Headers({ 'content-type': 'application/json' });
    return { status: httpStatusOfReason(error.reason), header, body };
  }
  const trailer = new Headers();
  const end = wire.end(trailer, shown);
  return {
    status: 200,
    header: new Headers({ 'content-type': contentType }),
    body: end === null ? NO_BYTES : encodeEnvelope(wire.endFlag, end),
    ...(wire.protocol === 'grpc' ? { trailer } : {}),
  };
}
