import type { Message } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { transformInvokeImplementation } from '@connectrpc/connect/protocol';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import type { Call } from './call.ts';
import { messagesIn } from './protocol/envelopes.ts';
import { givenUntilAborted } from './protocol/until-aborted.ts';

/** Makes the answer of a method that takes or returns a stream, part by part. */
export function streamAnswer(call: Call): HttpAnswer {
  return call.inEnvelopes(envelopesOf(call));
}

async function* envelopesOf(call: Call): AsyncGenerator<Uint8Array> {
  let error: ConnectError | undefined;
  try {
    for await (const message of answersTo(call)) yield await call.envelope(call.encoded(message));
  } catch (failure) {
    error = call.shown(failure);
  } finally {
    call.close();
  }
  const last = await call.lastEnvelope(error);
  if (last !== null) yield last;
}

/** Messages that the method answers; they end with the deadline, the credential, or the process. */
function answersTo(call: Call): AsyncIterable<Message> {
  const { drainSignal } = call.options;
  const signals = [call.context.signal, call.admitted.revoked];
  const isLongLived = call.method.methodKind !== 'client_streaming';
  if (isLongLived && drainSignal !== undefined) signals.push(drainSignal);
  const invoke = transformInvokeImplementation(call.spec, call.context, []);
  return givenUntilAborted(invoke(messagesOf(call)), AbortSignal.any(signals), call.mayChange);
}

async function* messagesOf(call: Call): AsyncGenerator<Message> {
  call.mustTake();
  const { body } = call.request;
  let isFirst = true;
  for await (const bytes of body instanceof Promise ? [body] : body) {
    for (const envelope of messagesIn(bytes, call.options.readMaxBytes, call.wire.endFlag)) {
      yield await call.decoded(envelope, isFirst);
      isFirst = false;
    }
  }
}
