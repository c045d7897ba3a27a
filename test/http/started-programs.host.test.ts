import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { RawClient, rawCheck, startServer, waitFor } from './start-server.ts';

const CHECK = rawCheck('wait:60000');

/* A connection ends once no process holds it: a program that had inherited one would leave its client waiting for an answer. */
test.each([
  ['uWebSockets.js', CHECK],
  ['node:http', CHECK.replace('/workspace', 'http://x/workspace')],
])('a program that was started meanwhile keeps no connection of %s open', async (_, sent) => {
  const { port, server } = await startServer();
  // Those behind the first are accepted by another way, where they wait together.
  const clients = Array.from({ length: 4 }, () => new RawClient(port));
  for (const client of clients) {
    onTestFinished(() => void client.socket.destroy());
    client.socket.write(sent);
  }
  await waitFor(() => server.inFlightCount === clients.length);
  const program = spawn('sleep', ['60'], { stdio: 'ignore' });
  onTestFinished(() => void program.kill('SIGKILL'));
  await once(program, 'spawn');
  await server.stop(0);
  await Promise.all(clients.map(({ closed }) => closed));
  expect(program.exitCode, 'it still runs').toBeNull();
});
