import type { Message } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { invokeUnaryImplementation, mergeNonProtocolHeaders } from '@connectrpc/connect/protocol';
import { errorToJsonBytes, trailerMux } from '@connectrpc/connect/protocol-connect';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import { COMPRESSED } from '../bodies/envelope.ts';
import { bodyTooLarge } from '../bodies/gzip.ts';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import type { Call } from './call.ts';
import { httpStatusOfCode } from './protocol/connect-errors.ts';
import { onlyEnvelope } from './protocol/envelopes.ts';
import { untilAborted } from './protocol/until-aborted.ts';

type UnarySpec = Parameters<typeof invokeUnaryImplementation>[0];

const NO_BYTES = new Uint8Array(0);

/**
 * Makes the whole answer of a unary method. The generators of Connect's own pipeline of streams would cost more than a small
 * call does.
 */
export async function unaryAnswer(call: Call): Promise<HttpAnswer> {
  let body: Uint8Array = NO_BYTES;
  let error: ConnectError | undefined;
  try {
    const message = await untilAborted(invoked(call), call.context.signal, call.mayChange);
    body = call.encoded(message);
  } catch (failure) {
    error = call.shown(failure);
  } finally {
    call.close();
  }
  return call.wire.isEnveloped
    ? await inEnvelopes(call, body, error)
    : await plain(call, body, error);
}

async function invoked(call: Call): Promise<Message> {
  call.mustTake();
  const { wire, options, compression } = call;
  const bytes = await (call.request.body as Promise<Uint8Array>);
  const envelope = wire.isEnveloped
    ? onlyEnvelope(bytes, options.readMaxBytes, wire.endFlag)
    : { flags: compression.request === null ? 0 : COMPRESSED, data: bytes };
  if (envelope.data.length > options.readMaxBytes) throw bodyTooLarge(options.readMaxBytes);
  const input = await call.decoded(envelope, true);
  return invokeUnaryImplementation(call.spec as UnarySpec, call.context, input, []);
}

/** Makes an answer whose status and body say how the call ended. */
async function plain(
  call: Call,
  message: Uint8Array,
  error: ConnectError | undefined,
): Promise<HttpAnswer> {
  const { responseHeader, responseTrailer } = call.context;
  let body = error === undefined ? message : errorBody(error, responseHeader);
  const { response } = call.compression;
  if (response !== null && body.byteLength >= call.options.compressMinBytes) {
    body = await response.compress(body);
    responseHeader.set(call.wire.encoding, response.name);
  }
  const header = trailerMux(responseHeader, responseTrailer);
  const status = error === undefined ? 200 : httpStatusOfCode(error.code);
  return { status, header, body };
}

function errorBody(error: ConnectError, header: Headers): Uint8Array {
  header.set('content-type', 'application/json');
  if (!error.isWireError) mergeNonProtocolHeaders(header, error.metadata);
  try {
    return errorToJsonBytes(error, ANSWER_JSON);
  } catch {
    // A detail that cannot be serialized must not cost the caller the code.
    return errorToJsonBytes(new ConnectError('internal error', Code.Internal), undefined);
  }
}

/** Makes an answer whose last envelope or trailer says how the call ended. */
async function inEnvelopes(
  call: Call,
  message: Uint8Array,
  error: ConnectError | undefined,
): Promise<HttpAnswer> {
  const first = error === undefined ? await call.envelope(message) : NO_BYTES;
  const last = await call.lastEnvelope(error);
  return call.inEnvelopes(last === null ? first : Buffer.concat([first, last]));
}
