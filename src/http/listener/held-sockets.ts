import net from 'node:net';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { descriptorOf, loadSocketPeek } from '../socket-peek.ts';
import { listenOn } from './sniffing-listener.ts';

/** A listening socket that this process does not accept from: it is for child processes. */
export type HeldSocket = {
  readonly fd: number;
  readonly port: number;
  /** Lets no new client in from now on, in any process; clients that came before still wait there. */
  letNobodyIn(): void;
  /** Closes this copy; the port refuses connections once every process has closed its own. */
  close(): void;
};

/**
 * Opens `count` sockets on one port (0: a free one), among which the kernel distributes connections. The sockets are held,
 * and not accepted from, for as long as this process lives. Where the system cannot share a port, all are one socket.
 * Errors: the system's (EADDRINUSE…); INTERNAL where descriptors are not available.
 */
export async function holdSockets(
  host: string,
  port: number,
  count: number,
): Promise<readonly HeldSocket[]> {
  const first = await holdSocket(host, port, count > 1);
  const held = [first];
  try {
    while (held.length < count) {
      held.push(first.isShared ? await holdSocket(host, first.port, true) : first);
    }
    return held;
  } catch (error) {
    for (const socket of held) socket.close();
    throw error;
  }
}

async function holdSocket(
  host: string,
  port: number,
  reusePort: boolean,
): Promise<HeldSocket & { readonly isShared: boolean }> {
  const peek = loadSocketPeek();
  if (peek === null) {
    throw new AppError<SharedReason>('INTERNAL', 'this platform cannot pass sockets to processes');
  }
  const server = net.createServer();
  let isShared = reusePort;
  await listenOn(server, { host, port, reusePort }).catch(async (error: NodeJS.ErrnoException) => {
    if (!reusePort || (error.code !== 'ENOTSUP' && error.code !== 'EINVAL')) throw error;
    isShared = false;
    await listenOn(server, { host, port });
  });
  const bound = (server.address() as net.AddressInfo).port;
  const fd = peek.duplicate(descriptorOf(server));
  // Before the loop turns, so that nothing was accepted.
  server.close();
  if (fd < 0) throw new AppError<SharedReason>('INTERNAL', 'a listening socket cannot be kept');
  let isOpen = true;
  const close = (): void => {
    if (isOpen) peek.close(fd);
    isOpen = false;
  };
  const letNobodyIn = (): void => {
    if (isOpen) peek.letNobodyIn(fd);
  };
  return { fd, port: bound, letNobodyIn, close, isShared };
}
