import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const SERVER = pathToFileURL('src/http/listener/http-server.ts').href;

/** A process in which uWebSockets.js does not load, as where it has no binary for the version of Node.js. */
const PROGRAM = `
import { registerHooks } from 'node:module';
registerHooks({
  resolve(name, context, next) {
    if (name === 'uWebSockets.js') throw new Error("Cannot find module './bin/uws_of_another.node'");
    return next(name, context);
  },
});
const { createHttpServer } = await import(${JSON.stringify(SERVER)});
const incidents = [];
const onIncident = (event, detail) => incidents.push(event + ': ' + detail);
const server = createHttpServer({ host: '127.0.0.1', port: 0, onIncident });
server.route('GET', '/', (exchange) => exchange.send(200, 'text/plain', JSON.stringify(server.http1Counts)));
const { port } = await server.listen();
const response = await fetch('http://127.0.0.1:' + port + '/');
console.log(JSON.stringify({ text: await response.text(), incidents, kept: response.headers.get('keep-alive') }));
await server.stop(0);
`;

test('without a binary node:http serves all of HTTP/1.1, and the log says why', () => {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', PROGRAM], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  const { platform, arch, version, versions } = process;
  expect(JSON.parse(stdout)).toEqual({
    text: '{"uws":0,"node":1}',
    incidents: [
      `http1_on_node: uWebSockets.js does not load on ${platform} ${arch}, Node.js ${version} (ABI ${versions.modules}): Cannot find module './bin/uws_of_another.node'`,
    ],
    kept: 'timeout=120',
  });
});
