// Started by check-beside-echo.ts: uWebSockets.js alone. It compares the token, parses the JSON, and answers as an allow does.
import { App, us_socket_local_port } from 'uWebSockets.js';

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
      res.end(JSON.stringify({ allowed: body.subject_user_id !== '' }));
    });
  });
});
app.listen('127.0.0.1', 0, (socket) => {
  process.stdout.write(`${socket === false ? 'failed' : us_socket_local_port(socket)}\n`);
});
