/* A server that says its port to its parent, and stops in order at the parent's first word. */
import { createHttpServer } from '../../src/http/listener/http-server.ts';

const server = createHttpServer({ host: '127.0.0.1', port: 0 });
server.route('GET', '/', (exchange) => exchange.send(200, 'application/json', '{}'), false);
const { port } = await server.listen();
process.send?.(port);
process.once('message', () => {
  server.beginDrain();
  void server.stop(2_000).then(() => process.disconnect());
});
