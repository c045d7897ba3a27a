import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';

/** One address before several database servers, as a virtual IP or a proxy of a failover manager gives. */
export interface TcpSwitch {
  /** What services connect to: a port of the loopback, with the credentials of the first server. */
  readonly target: ServerTarget;
  /** New connections go to `server` from now on; those that stand are cut unless `isKept`. */
  point(server: ServerTarget, isKept?: boolean): void;
  /** Cuts every connection and refuses new ones, until `point`. */
  close(): void;
  /** Connections that stand. */
  readonly connectionCount: number;
  end(): Promise<void>;
}

/** Forwards the connections to a port of its own to `server`, until it is pointed to another one. */
export async function createTcpSwitch(server: ServerTarget): Promise<TcpSwitch> {
  let current: ServerTarget | undefined = server;
  const sockets = new Set<Socket>();
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const listener = createServer((client) => {
    if (current === undefined) {
      client.destroy();
      return;
    }
    const { host, port } = current;
    const upstream = host.startsWith('/')
      ? connect(join(host, `.s.PGSQL.${port}`))
      : connect(port, host);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('the switch has no port');
  return {
    target: { ...server, host: '127.0.0.1', port: address.port },
    point: (next, isKept = false) => {
      current = next;
      if (!isKept) cutAll();
    },
    close: () => {
      current = undefined;
      cutAll();
    },
    get connectionCount() {
      return sockets.size / 2;
    },
    end: async () => {
      cutAll();
      listener.close();
      await once(listener, 'close');
    },
  };
}
