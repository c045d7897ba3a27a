import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { ARRIVING, arrive } from './arriving-clients.ts';

test('who arrives as a drained port closes is answered or refused', async () => {
  for (let stop = 0; stop < 3; stop++) {
    const child = fork(new URL('closing-server.ts', import.meta.url));
    onTestFinished(() => void child.kill('SIGKILL'));
    const [port] = (await once(child, 'message')) as [number];
    const clients = arrive(port, '/');
    await clients.answered(20 * ARRIVING);
    child.send('stop');
    await clients.ended;
    expect([...clients.outcomes.keys()].toSorted()).toEqual(['ECONNREFUSED', 'answered']);
  }
}, 60_000);
