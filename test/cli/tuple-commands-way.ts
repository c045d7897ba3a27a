import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A way to a service that is cut where a test wants it. */
export type Way = {
  readonly url: string;
  /** Cuts every connection that stands. */
  cut(): void;
  /** Cuts the next connection that brought so many bytes from the service. Once. */
  cutAfterReceived(bytes: number): void;
  /** Cuts the next connection that took so many bytes to the service. Once. */
  cutAfterSent(bytes: number): void;
  readonly cutCount: number;
  close(): Promise<void>;
};

/** Forwards connections to a port of its own to the service at `baseUrl`. */
export async function createWay(baseUrl: string): Promise<Way> {
  const { hostname, port } = new URL(baseUrl);
  const sockets = new Set<Socket>();
  const limits = { received: Infinity, sent: Infinity };
  let cutCount = 0;
  const forward = (from: Socket, to: Socket, limit: keyof typeof limits): void => {
    let passed = 0;
    from.on('data', (bytes) => {
      passed += bytes.length;
      if (passed <= limits[limit]) {
        if (!to.write(bytes)) from.pause();
        return;
      }
      // What came so far arrives, so that the other side stands in the middle of it.
      const rest = bytes.subarray(0, bytes.length - (passed - limits[limit]));
      limits[limit] = Infinity;
      cutCount += 1;
      from.destroy();
      to.end(rest);
    });
    to.on('drain', () => from.resume());
  };
  const listener = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.end();
      });
    }
    forward(client, upstream, 'sent');
    forward(upstream, client, 'received');
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('the way has no port');
  const cut = (): void => {
    cutCount += 1;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut,
    cutAfterReceived: (bytes) => void (limits.received = bytes),
    cutAfterSent: (bytes) => void (limits.sent = bytes),
    get cutCount() {
      return cutCount;
    },
    close: async () => {
      cut();
      listener.close();
      await once(listener, 'close');
    },
  };
}
