// The yardstick of http-check-vs-echo.ts, which starts it; yields nothing by itself.
import { App, us_socket_local_port } from 'uWebSockets.js';

/**
 * The yardstick of http-check-vs-echo.ts: a raw uWebSockets.js server that checks the same token,
 * parses the same JSON and answers with a body of the same size, and does nothing else.
 */
const token = `Bearer ${process.env['ECHO_TOKEN'] ?? ''}`;
const app = App();
app.post('/workspace.v1.AuthzService/Check', (res, req) => {
  const isAllowed = req.getHeader('authorization') === token;
  let isAborted = false;
  res.onAborted(() => {
    isAborted = true;
  });
  res.onData((chunk, isLast) => {
    if (!isLast || isAborted) return;
    const body = JSON.parse(Buffer.from(chunk).toString()) as { subject_user_id: string };
    if (!isAllowed) {
      res.writeStatus('401 Unauthorized').end();
      return;
    }
    res.cork(() => {
      res.writeHeader('content-type', 'application/json');
      res.end(JSON.stringify({ allowed: body.subject_user_id === 'alice' }));
    });
  });
});
app.listen('127.0.0.1', Number(process.env['ECHO_PORT']), (socket) => {
  process.stdout.write(`${socket === false ? 'failed' : us_socket_local_port(socket)}\n`);
});
