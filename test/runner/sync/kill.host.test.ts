import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createLonelySync } from './lonely-sync.ts';

const ROUNDS = 4;

/** Runs the mortal process until it has acknowledged some, kills it; what it acknowledged. */
async function runAndKill(
  stateDir: string,
  round: number,
  count: number,
): Promise<readonly string[]> {
  const script = fileURLToPath(new URL('./mortal-sync.ts', import.meta.url));
  const child = spawn(process.execPath, [script, stateDir, String(round)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    // Reads on to the end of what was printed before the kill.
    if (lines.length === count) child.kill('SIGKILL');
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
  return lines;
}

test('what was acknowledged survives kill -9: deployments are there, deliveries are known', async () => {
  const stateDir = await mkdtemp(join(tmpdir(), 'kill-sync-'));
  onTestFinished(() => rm(stateDir, { recursive: true, force: true }));
  const lines: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    lines.push(...(await runAndKill(stateDir, round, 7 + 12 * round)));
  }
  const ids = (kind: string): readonly string[] =>
    lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));
  const sync = await createLonelySync(stateDir, () => undefined);
  onTestFinished(() => sync.close());
  const present = new Set(sync.deployments.query({}).map(({ runId }) => runId));
  expect(ids('deployment').length).toBeGreaterThan(ROUNDS * 3);
  expect(ids('deployment').filter((id) => !present.has(id))).toEqual([]);
  for (const id of ids('delivery')) {
    const rawBody = Buffer.from(JSON.stringify({ id }));
    const signature = createHmac('sha256', 'secret').update(rawBody).digest('hex');
    const headers = new Headers({
      'x-host-event': 'push',
      'x-host-delivery': `another-${id}`,
      'x-host-signature-256': `sha256=${signature}`,
    });
    expect(await sync.verifyDelivery({ headers, rawBody })).toMatchObject({ kind: 'duplicate' });
  }
});
