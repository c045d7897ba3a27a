import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { expect, onTestFinished, test } from 'vitest';

const REQUEST = 'GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n';
/** So many at once that some arrive in whatever moment the port closes. */
const CLIENTS = 32;

/** What becomes of one connection with one request. */
function outcomeOf(port: number): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(REQUEST));
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)));
    socket.on('close', () => resolve('closed'));
    socket.on('data', (bytes) => {
      text += bytes.toString();
      if (!text.endsWith('{}')) return;
      resolve('answered');
      socket.destroy();
    });
  });
}

test('who arrives as a drained port closes is answered or refused', async () => {
  const outcomes = new Map<string, number>();
  for (let stop = 0; stop < 3; stop++) {
    const child = fork(new URL('closing-server.ts', import.meta.url));
    onTestFinished(() => void child.kill('SIGKILL'));
    const [port] = (await once(child, 'message')) as [number];
    let answered = 0;
    const client = async (): Promise<void> => {
      for (let outcome = 'answered'; outcome === 'answered';) {
        outcome = await outcomeOf(port);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        if (outcome === 'answered') answered += 1;
        if (answered === 20 * CLIENTS) child.send('stop');
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  }
  expect([...outcomes.keys()].toSorted()).toEqual(['ECONNREFUSED', 'answered']);
}, 60_000);
