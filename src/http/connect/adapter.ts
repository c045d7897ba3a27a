/*
 * Calls of Connect, gRPC and gRPC-Web flow through this folder, from an exchange or a stream to a method of a service and back. `http1-calls` and `http2-calls` take them, `service-calls`
 * finds who calls, `adapter-router` the method. `messages/` reads and writes their bodies; `protocol/` has envelopes, codes and trailers.
 */
import type { ErrorPolicy } from './adapter-guard.ts';
import type { ConnectAdapter, ConnectAdapterOptions } from './adapter-options.ts';
import { createRouter, jsonOptionsOf } from './adapter-router.ts';
import { Http1Calls } from './http1-calls.ts';
import { Http2Calls } from './http2-calls.ts';
import { MessageDecoding } from './messages/message-decoding.ts';
import { OPEN_CALLERS } from './protocol/caller-port.ts';
import { ServiceCalls } from './service-calls.ts';

const WRITE_MAX_BYTES = 256 * 1_048_576;
const COMPRESS_MIN_BYTES = 1_024;

/**
 * Builds the adapter: Connect, gRPC-Web and gRPC for any service, whose callers, errors and limits are in `options`. Order of
 * checks: credential, method, verb, content type, body. Body-less answers: 405 with Allow, 415. Errors of calls: `options.errors`.
 */
export function createConnectAdapter(options: ConnectAdapterOptions): ConnectAdapter {
  const { errors, malformed, callers = OPEN_CALLERS } = options;
  const policy: ErrorPolicy = {
    readMaxBytes: options.readMaxBytes,
    report: options.report,
    callers,
    errors,
    malformed,
    onFailure: options.onFailure,
  };
  const json = jsonOptionsOf(options.registry);
  const decoding = new MessageDecoding({
    limits: options.decodeLimits,
    json,
    callers,
    malformed,
    isEmptyJsonTaken: options.isPlainHttpTaken === true,
    onRefused: options.onMessageRefused,
  });
  const router = createRouter({
    policy,
    decoding,
    json,
    writeMaxBytes: options.writeMaxBytes ?? WRITE_MAX_BYTES,
    compressMinBytes: options.compressMinBytes ?? COMPRESS_MIN_BYTES,
    interceptors: options.interceptors ?? [],
    drainSignal: options.drainSignal,
  });
  options.routes(router);
  const calls = new ServiceCalls(options, policy, decoding, router.handlers);
  const http1 = new Http1Calls(calls);
  const http2 = new Http2Calls(calls);
  return {
    handleHttp1: (exchange) => http1.handle(exchange),
    handleBuffered: (exchange, path, headers, body, requestId, admitted) =>
      http1.handleBuffered(exchange, path, headers, body, requestId, admitted),
    handleBufferedStream: (stream, headers, body, leftMs, admitted) =>
      http2.handleBuffered(stream, headers, body, leftMs, admitted),
    handleHttp2: (stream, headers, deadlines) => http2.handle(stream, headers, deadlines),
    paths: router.handlers.map((handler) => handler.requestPath),
  };
}
