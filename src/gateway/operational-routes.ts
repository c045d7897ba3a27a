import type { IncomingHttpHeaders } from 'node:http2';
import type { HttpExchange } from '../http/exchange/http-exchange.ts';
import type { Http2RequestStream } from '../http/http2/request-stream.ts';
import type { HttpServer } from '../http/listener/http-server.ts';
import type { Readiness } from './readiness.ts';

const JSON_TYPE = 'application/json';
const NOT_FOUND = '{"code":"not_found","message":"no such path","details":[]}';
const UNRENDERED = '{"code":"internal","message":"internal error","details":[]}';

const ALIVE = '{"status":"ok"}';

/** /healthz and /readyz, which bypass the credential check; for both ports. */
export function addHealthRoutes(server: HttpServer, readiness: Readiness): void {
  const alive = (exchange: HttpExchange): void => exchange.send(200, JSON_TYPE, ALIVE);
  const ready = (exchange: HttpExchange): void => {
    const report = readiness.report();
    exchange.send(report.statusCode, JSON_TYPE, report.body);
  };
  server.route('GET', '/healthz', alive, false);
  server.route('GET', '/readyz', ready, false);
}

/** /metrics in the text exposition format; for the metrics port only. */
export function addMetricsRoute(
  server: HttpServer,
  metrics: { readonly contentType: string; readonly render: () => Promise<string> },
): void {
  server.route('GET', '/metrics', (exchange) => {
    metrics.render().then(
      (text) => exchange.send(200, metrics.contentType, text),
      () => exchange.send(500, JSON_TYPE, UNRENDERED),
    );
  });
}

/** The same over HTTP/2, as some balancers probe: every GET that is not one on a method. */
export function answerGetStream(
  stream: Http2RequestStream,
  headers: IncomingHttpHeaders,
  readiness: Readiness,
): void {
  const path = (headers[':path'] ?? '').replace(/\?.*$/s, '');
  let statusCode = 404;
  let body = NOT_FOUND;
  if (path === '/healthz') [statusCode, body] = [200, ALIVE];
  else if (path === '/readyz') ({ statusCode, body } = readiness.report());
  if (stream.destroyed) return;
  stream.respond({ ':status': statusCode, 'content-type': JSON_TYPE });
  stream.end(body);
}

/** The answer to a path that nobody serves. */
export function sendNotFound(exchange: HttpExchange): void {
  exchange.send(404, JSON_TYPE, NOT_FOUND);
}
