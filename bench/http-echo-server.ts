// Three ways to answer the same JSON request, one process each, for a load generator to compare:
//   raw       uWebSockets.js alone, its own listen socket
//   listener  a bare handler behind our shared-port listener (HttpExchange)
//   adapter   the general path: Connect's protocol through createConnectAdapter
// Started by bench/http-compare.ts; yields nothing by itself.
import { App } from 'uWebSockets.js';
import { createCallerPort } from '../src/gateway/connect/caller-port.ts';
import { AUTHZ_ERRORS } from '../src/gateway/connect/connect-error.ts';
import { malformedMessage } from '../src/gateway/connect/malformed-message.ts';
import { AuthzService } from '../src/gen/workspace/v1/authz_service_pb.ts';
import { createConnectAdapter } from '../src/http/connect/adapter.ts';
import { createHttpServer } from '../src/http/listener/http-server.ts';

const PATH = '/workspace.v1.AuthzService/Check';
const TOKEN = 'Bearer 0123456789abcdef0123456789abcdef';
const BODY_BYTES_MAX = 8 * 1_048_576;
const [, , mode, portText] = process.argv;
const port = Number(portText);

type Query = { readonly subject_user_id: string };

function answerTo(body: Uint8Array): string {
  const query = JSON.parse(
    Buffer.from(body.buffer, body.byteOffset, body.length).toString(),
  ) as Query;
  return query.subject_user_id === 'alice' ? '{"allowed":true}' : '{"allowed":false}';
}

if (mode === 'raw') {
  const app = App();
  app.post(PATH, (res, req) => {
    const isAllowed = req.getHeader('authorization') === TOKEN;
    res.onAborted(() => undefined);
    res.onData((chunk, isLast) => {
      if (!isLast) return;
      const text = answerTo(new Uint8Array(chunk));
      res.cork(() => {
        if (!isAllowed) res.writeStatus('401 Unauthorized');
        res.writeHeader('content-type', 'application/json').end(text);
      });
    });
  });
  app.listen('127.0.0.1', port, () => {
    process.stdout.write('ready\n');
  });
} else {
  const adapter = createConnectAdapter({
    routes: (router) => {
      router.service(AuthzService, {
        check: (request) => ({ allowed: request.subjectUserId === 'alice' }),
      });
    },
    callers: createCallerPort(),
    errors: AUTHZ_ERRORS,
    malformed: malformedMessage,
    readMaxBytes: BODY_BYTES_MAX,
    report: () => undefined,
  });
  const server = createHttpServer({
    host: '127.0.0.1',
    port,
    http2: { onStream: adapter.handleHttp2 },
  });
  if (mode === 'listener') {
    server.route('POST', PATH, (exchange) => {
      const status = exchange.header('authorization') === TOKEN ? 200 : 401;
      exchange.readBody(
        BODY_BYTES_MAX,
        (body) => exchange.send(status, 'application/json', answerTo(body)),
        () => exchange.sendEmpty(429),
      );
    });
  }
  server.fallback(adapter.handleHttp1);
  await server.listen();
  process.stdout.write('ready\n');
}
