import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { join } from 'node:path';
import type { PostgresTarget, ServerTarget } from '../../src/store/postgres/pool.ts';

/** A way to Postgres that loses answers. */
export type CuttingProxy = {
  readonly target: PostgresTarget;
  /** The next `count` statements whose text contains `text` are carried out; their answers are lost. */
  loseAnswers(text: string, count: number): void;
  readonly lost: number;
  close(): Promise<void>;
};

/** Forwards connections to `target`, a test database, through a port of its own. */
export async function createCuttingProxy(target: PostgresTarget): Promise<CuttingProxy> {
  const server = serverOf(target);
  const sockets = new Set<Socket>();
  let wanted = '';
  let remaining = 0;
  let lost = 0;
  const listener = createServer((client) => {
    const upstream = server.host.startsWith('/')
      ? connect(join(server.host, `.s.PGSQL.${server.port}`))
      : connect(server.port, server.host);
    let isCut = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      socket.on('error', () => socket.destroy());
    }
    client.on('data', (bytes) => {
      if (remaining > 0 && bytes.includes(wanted)) {
        remaining--;
        isCut = true;
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      // The server answers after its commit: what it did stands, but nobody hears of it.
      if (!isCut) return void client.write(bytes);
      lost++;
      client.destroy();
      upstream.destroy();
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('proxy has no port');
  return {
    target: { ...server, host: '127.0.0.1', port: address.port },
    loseAnswers: (text, count) => {
      wanted = text;
      remaining = count;
    },
    get lost() {
      return lost;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, 'close');
    },
  };
}

function serverOf(target: PostgresTarget): ServerTarget {
  if ('host' in target) return target;
  const url = new URL(target.connectionString);
  return {
    host: url.hostname,
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1),
  };
}
