/*
 * Calls of Connect, gRPC and gRPC-Web flow through this folder, from an exchange or a stream to a method of a service and
 * back. `http1-carrier` and `http2-carrier` are their ways in and out, `calls` finds caller and method, `call-handler`
 * answers. `protocol/` has what differs by protocol, codes and trailers.
 */
import { createServiceImplSpec } from '@connectrpc/connect';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import { BodyBudget } from '../bodies/body-budget.ts';
import { bodyTooLarge } from '../bodies/gzip.ts';
import type { HttpExchange } from '../exchange/http-exchange.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from '../exchange/unread-answers.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../request-id.ts';
import type { ConnectAdapter, ConnectAdapterOptions } from './adapter-options.ts';
import { orUnread } from './call-carrier.ts';
import { type CallHandler, createCallHandler } from './call-handler.ts';
import type { CallLimits } from './call.ts';
import { Calls } from './calls.ts';
import { Http1Carrier } from './http1-carrier.ts';
import { Http2Carrier } from './http2-carrier.ts';
import { OPEN_CALLERS } from './protocol/caller-port.ts';
import { MessageDecoding } from './protocol/message-decoding.ts';

const WRITE_MAX_BYTES = 256 * 1_048_576;
const COMPRESS_MIN_BYTES = 1_024;
const STALL_MS = 60_000;

/**
 * Builds the adapter: Connect, gRPC-Web and gRPC for any service. `options` has its callers, errors and limits. Order of
 * checks: credential, method, verb, content type, body. Body-less answers: 405 with Allow, 415. Errors of calls:
 * `options.errors`.
 */
export function createConnectAdapter(options: ConnectAdapterOptions): ConnectAdapter {
  const { registry, readMaxBytes, callers = OPEN_CALLERS } = options;
  const { bodyBudget = new BodyBudget() } = options;
  const policy = { ...options, callers };
  const registered = registry === undefined ? {} : { registry };
  const json = { ...ANSWER_JSON, ignoreUnknownFields: false, ...registered };
  const handlerOptions: CallLimits = {
    ...options,
    policy,
    bodyBudget,
    json,
    decoding: new MessageDecoding({
      limits: options.decodeLimits,
      json,
      callers,
      malformed: options.malformed,
      onRefused: options.onMessageRefused,
    }),
    writeMaxBytes: options.writeMaxBytes ?? WRITE_MAX_BYTES,
    compressMinBytes: options.compressMinBytes ?? COMPRESS_MIN_BYTES,
  };
  const handlers: CallHandler[] = [];
  options.routes({
    service(service, implementation) {
      for (const spec of Object.values(createServiceImplSpec(service, implementation).methods)) {
        handlers.push(createCallHandler(spec, handlerOptions));
      }
    },
  });
  const unread =
    options.unread ?? new UnreadAnswers({ bytesMax: UNREAD_BYTES_MAX, stallMs: STALL_MS });
  const streamParts = { readMaxBytes, budget: bodyBudget, unread };
  const carrierOf = (exchange: HttpExchange) => new Http1Carrier(exchange, readMaxBytes, unread);
  const calls = new Calls(options, policy, handlers);
  return {
    handleHttp1: (exchange) => calls.handle(carrierOf(exchange)),
    handleHttp2: (stream, headers, deadlines) =>
      calls.handle(new Http2Carrier(stream, headers, streamParts, deadlines)),
    handleBuffered: (exchange, path, header, bytes, requestId, admitted, leftMs) => {
      const body = Promise.resolve(bytes);
      calls.handleBuffered(carrierOf(exchange), path, requestId, admitted, {
        header,
        body,
        leftMs,
      });
    },
    handleBufferedStream: (stream, headers, bytes, leftMs, deadlines, admitted) => {
      const carrier = new Http2Carrier(stream, headers, streamParts, deadlines);
      const header = carrier.headers();
      const body = orUnread(
        bytes === null ? Promise.reject(bodyTooLarge(readMaxBytes)) : Promise.resolve(bytes),
      );
      const requestId = requestIdOf(carrier.header(REQUEST_ID_HEADER));
      calls.handleBuffered(carrier, carrier.path, requestId, admitted, { header, body, leftMs });
    },
    paths: handlers.map(({ path }) => path),
  };
}
