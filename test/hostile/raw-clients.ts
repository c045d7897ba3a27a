import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { RawClientsOptions } from './raw-clients-of.ts';

/* Connections that send bytes and stay, on a thread of its own, so that what they take is not counted with the service's. */

/** Between two parts, so that they are read one by one. */
const PAUSE_MS = 2;
const { port, count, parts, isReading, atOnce = 50 } = workerData as RawClientsOptions;
const sockets: net.Socket[] = [];

async function open(): Promise<void> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  sockets.push(socket);
  socket.on('error', () => socket.destroy());
  if (isReading) socket.resume();
  for (const part of parts) {
    if (socket.destroyed) return;
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
      socket.write(part, () => resolve());
    });
    await sleep(PAUSE_MS);
  }
}

for (let from = 0; from < count; from += atOnce) {
  const opened = Array.from({ length: Math.min(atOnce, count - from) }, () => open());
  await Promise.all(opened);
}
parentPort?.once('message', () => {
  for (const socket of sockets) socket.destroy();
  parentPort?.close();
});
const openCount = sockets.filter((socket) => !socket.destroyed).length;
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
parentPort?.postMessage(openCount);
