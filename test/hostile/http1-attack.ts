import net from 'node:net';

/** A connection that sends raw bytes; what it receives is only looked at. */
export type Attacker = {
  readonly socket: net.Socket;
  /** What came so far, the last 64 KiB of it. */
  readonly received: () => string;
  readonly receivedBytes: () => number;
  readonly isClosed: () => boolean;
};

const REMEMBERED = 65_536;

/** Connects to a port of this machine. */
export async function attacker(port: number): Promise<Attacker> {
  const socket = net.connect({ port, host: '127.0.0.1' });
  let received = '';
  let receivedBytes = 0;
  let isClosed = false;
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    receivedBytes += text.length;
    received = (received + text).slice(-REMEMBERED);
  });
  socket.on('error', () => {
    isClosed = true;
  });
  socket.on('close', () => {
    isClosed = true;
  });
  await new Promise((resolve) => {
    socket.once('connect', resolve);
    socket.once('close', resolve);
  });
  return {
    socket,
    received: () => received,
    receivedBytes: () => receivedBytes,
    isClosed: () => isClosed,
  };
}

/** Writes when the kernel has room; returns at once on a closed connection. */
export async function pour({ socket, isClosed }: Attacker, bytes: Uint8Array): Promise<void> {
  if (isClosed() || !socket.writable) return;
  if (socket.write(bytes)) return;
  await new Promise((resolve) => {
    socket.once('drain', resolve);
    socket.once('close', resolve);
  });
}

/** Polls until `holds`. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}
