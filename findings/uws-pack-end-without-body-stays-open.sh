#!/usr/bin/env bash
# Subject: uws-pack 20.0.8, a repack of uWebSockets.js 20, Node.js 22: `res.endWithoutBody(reportedContentLength?, closeConnection?)`,
#          which its types describe as "Ends this response without a body".
# Guess:   `res.endWithoutBody(5)` ends the answer to a HEAD request, and the connection takes the next one. With `undefined`
#          for the length and `true` for the flag no length is written, and the connection is closed.
# Instead: with a length the head is written whole, and the client has its answer, but the server takes it for unfinished: the
#          next request on the connection closes it unanswered, and `onAborted` of the answer before runs. The flag does
#          not close it sooner. `undefined` in front of the flag is taken for a number: `Content-Length: 9223372036854775808`.
#          Without arguments the answer ends; with a field of one's own (`res.writeHeader('content-length', '5')`) before
#          that call it is what was meant.
# Met:     a connection on which HEAD was asked was closed under the request that came next.
# Needs npm and Node.js 22.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix . uws-pack@20.0.8
cat >run.mjs <<'JS'
import net from 'node:net';
import { App, us_socket_local_port } from 'uws-pack';

const aborted = new Set();
const ways = {
  '/length': (res) => res.endWithoutBody(5),
  '/length-and-flag': (res) => res.endWithoutBody(5, true),
  '/undefined-and-flag': (res) => res.endWithoutBody(undefined, true),
  '/nothing': (res) => res.endWithoutBody(),
  '/own-field': (res) => res.writeHeader('content-length', '5').endWithoutBody(),
};
const app = App();
for (const [path, answer] of Object.entries(ways)) {
  app.head(path, (res) => {
    res.onAborted(() => aborted.add(path));
    answer(res);
  });
}
app.get('/next', (res) => res.end('next'));
const port = await new Promise((done) => {
  app.listen('127.0.0.1', 0, (socket) => done(us_socket_local_port(socket)));
});

/* Asks HEAD, then GET on the same connection once that has its answer. */
async function ask(path) {
  const socket = net.connect(port, '127.0.0.1');
  const seen = { lengths: [], closedUnasked: false, next: 'not asked', aborted: false };
  const events = [];
  let wake = () => undefined;
  const push = (event) => {
    events.push(event);
    wake();
  };
  const take = async (ms) => {
    if (events.length === 0) {
      await new Promise((done) => {
        wake = done;
        setTimeout(done, ms);
      });
    }
    return events.shift();
  };
  socket.on('data', (bytes) => push(bytes.toString('latin1')));
  socket.on('error', () => undefined);
  socket.on('close', () => push('closed'));
  socket.write(`HEAD ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const head = await take(5_000);
  seen.lengths = [...head.matchAll(/content-length: (\d+)/gi)].map(([, digits]) => digits);
  seen.closedUnasked = (await take(1_000)) === 'closed';
  if (!seen.closedUnasked) {
    socket.write('GET /next HTTP/1.1\r\nHost: a\r\n\r\n');
    const next = await take(5_000);
    seen.next = next?.startsWith('HTTP/1.1 200 OK') ? 'answered' : (next ?? 'nothing');
  }
  socket.destroy();
  seen.aborted = aborted.has(path);
  return seen;
}

const pending = { closedUnasked: false, next: 'closed', aborted: true };
const ended = { closedUnasked: false, next: 'answered', aborted: false };
const expected = {
  '/length': { lengths: ['5'], ...pending },
  '/length-and-flag': { lengths: ['5'], ...pending },
  '/undefined-and-flag': { lengths: ['9223372036854775808'], ...pending },
  '/nothing': { lengths: [], ...ended },
  '/own-field': { lengths: ['5'], ...ended },
};
let asStated = true;
for (const path of Object.keys(ways)) {
  const seen = await ask(path);
  const length = seen.lengths.join(', ') || 'none';
  const end = seen.closedUnasked ? 'closed at once' : `kept; the next request: ${seen.next}`;
  console.log(`${path}: length ${length}; ${end}; aborted: ${seen.aborted ? 'yes' : 'no'}`);
  for (const [name, value] of Object.entries(expected[path])) {
    asStated &&= String(seen[name]) === String(value);
  }
}
console.log(`Node.js ${process.version}`, asStated ? 'as stated' : 'NOT as stated');
process.exit(asStated ? 0 : 1);
JS
node run.mjs
