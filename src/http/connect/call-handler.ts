import type { DescMethod } from '@bufbuild/protobuf';
import type { MethodImplSpec } from '@connectrpc/connect';
import {
  uResponseUnsupportedMediaType,
  uResponseVersionNotSupported,
} from '@connectrpc/connect/protocol';
import type { HttpAnswer } from '../exchange/answer-sink.ts';
import { Call, type CallLimits, type CallRequest } from './call.ts';
import { rpcOf } from './outgoing-error.ts';
import { wireOf } from './protocol/wire.ts';
import { streamAnswer } from './stream-answer.ts';
import { unaryAnswer } from './unary-answer.ts';

/** Answers the calls of one method. */
export type CallHandler = {
  readonly method: DescMethod;
  /** "/package.Service/Method" */
  readonly path: string;
  /** Whether the method takes calls of a content type. */
  readonly takes: (contentType: string) => boolean;
  /**
   * Answers a call; a failure of the method is an answer, too. Rejects where no answer can be sent, such as one with invalid
   * headers.
   */
  readonly answer: (request: CallRequest) => Promise<HttpAnswer>;
};

/** Serves a method over Connect, gRPC-Web and gRPC. */
export function createCallHandler(spec: MethodImplSpec, options: CallLimits): CallHandler {
  const { method } = spec;
  const isUnary = method.methodKind === 'unary';
  return {
    method,
    path: `/${rpcOf(method)}`,
    takes: (contentType) => wireOf(contentType, isUnary) !== undefined,
    answer: async (request) => {
      const wire = wireOf(request.header.get('content-type') ?? '', isUnary);
      if (wire === undefined) return uResponseUnsupportedMediaType;
      if (method.methodKind === 'bidi_streaming' && request.isHttp1) {
        // A client that waits for answers between its messages would hang.
        return { ...uResponseVersionNotSupported, header: new Headers({ connection: 'close' }) };
      }
      const call = new Call(spec, options, request, wire);
      return isUnary ? await unaryAnswer(call) : streamAnswer(call);
    },
  };
}
