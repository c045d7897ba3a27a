import { once } from 'node:events';
import { writeSync } from 'node:fs';
import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { assert } from '../../shared/assert.ts';
import { descriptorOf, loadSocketPeek } from '../socket-peek.ts';
import { AdoptedSockets } from './adopted-sockets.ts';

/* Real sockets: what the kernel names, and gives the numbers of closed ones. */

type Pair = { readonly client: net.Socket; readonly fd: number };

async function start() {
  const peek = loadSocketPeek();
  assert(peek !== null, 'system calls are there where the tests run');
  const server = net.createServer({ pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as net.AddressInfo;
  /** A connection, and a descriptor of its server's side that Node.js does not know. */
  const connect = async (): Promise<Pair> => {
    const accepted = once(server, 'connection') as Promise<[net.Socket]>;
    const client = net.connect(port, '127.0.0.1');
    onTestFinished(() => void client.destroy());
    const [socket] = await accepted;
    const fd = peek.duplicate(descriptorOf(socket));
    socket.destroy();
    await once(socket, 'close');
    return { client, fd };
  };
  return { peek, connect, sockets: new AdoptedSockets(peek) };
}

/** Both ends still speak. */
async function expectOpen({ client, fd }: Pair): Promise<void> {
  const data = once(client, 'data') as Promise<[Buffer]>;
  const text = Buffer.from('hello');
  expect(writeSync(fd, text)).toBe(text.length);
  expect((await data)[0].toString()).toBe('hello');
}

test('those on which nothing is asked are ended, others are not', async () => {
  const { peek, connect, sockets } = await start();
  expect(sockets.canEnd).toBe(false);
  const [idle, asking] = [await connect(), await connect()];
  onTestFinished(() => [idle, asking].forEach(({ fd }) => peek.close(fd)));
  for (const { fd } of [idle, asking]) sockets.add(fd);
  expect(sockets.canEnd).toBe(true);
  asking.client.write('GET');
  const polled = new Int32Array([asking.fd, 1]);
  while ((polled[1] ?? 0) >>> 16 === 0) {
    peek.poll(polled, 1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const ended = once(idle.client.resume(), 'end');
  sockets.endUnasked();
  await ended;
  await expectOpen(asking);
});

/** A connection whose server's side has the number of one that was adopted, and closed. */
async function renumbered({ peek, connect, sockets }: Awaited<ReturnType<typeof start>>) {
  const closed = await connect();
  sockets.add(closed.fd);
  const other = await connect();
  peek.close(closed.fd);
  // The lowest number that is free, unless another thread was first.
  const taken: number[] = [];
  while (!taken.includes(closed.fd)) taken.push(peek.duplicate(other.fd));
  onTestFinished(() => [other.fd, ...taken].forEach((fd) => peek.close(fd)));
  return { ...other, fd: closed.fd };
}

test('another socket that has the number of a closed one is not ended', async () => {
  const started = await start();
  const { sockets } = started;
  const other = await renumbered(started);
  sockets.endUnasked();
  await expectOpen(other);
  expect(sockets.canEnd, 'it is forgotten').toBe(false);
});

test('a number that was adopted again is that of the last socket', async () => {
  const started = await start();
  const { sockets } = started;
  const other = await renumbered(started);
  sockets.add(other.fd);
  const ended = once(other.client.resume(), 'end');
  sockets.endUnasked();
  await ended;
});
