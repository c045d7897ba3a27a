import { isMainThread } from 'node:worker_threads';

/*
 * For tests, loaded before a service: each listener writes a line of JSON with its port and its routes to the log once it listens.
 *
 *   NODE_OPTIONS="--import=<this file>" node src/main.ts
 */
if (isMainThread) {
  const { createHttpServer } = await import('../../src/http/listener/http-server.ts');
  type Server = ReturnType<typeof createHttpServer>;
  const shared = Object.getPrototypeOf(createHttpServer({ host: '127.0.0.1', port: 0 })) as Pick<
    Server,
    'route' | 'listen'
  >;
  const routesOf = new WeakMap<Server, (readonly [method: string, pattern: string])[]>();
  const { route, listen } = shared;
  shared.route = function (this: Server, method, pattern, ...rest) {
    const routes = routesOf.get(this) ?? [];
    routesOf.set(this, [...routes, [method, pattern]]);
    route.call(this, method, pattern, ...rest);
  };
  shared.listen = async function (this: Server) {
    const ports = await listen.call(this);
    const routes = routesOf.get(this) ?? [];
    process.stderr.write(`${JSON.stringify({ msg: 'routes', port: ports.port, routes })}\n`);
    return ports;
  };
}
