import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { spawnService, watchService } from '../support/child-service.ts';

const SERVER =
  'require("net").createServer().listen(0,"127.0.0.1",function(){console.log(this.address().port)})';

let dir: string;
const running: ChildProcess[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatehouse-port-'));
});
afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  rmSync(dir, { recursive: true, force: true });
});

/** What the notification service says that is to listen on `port`, and cannot. */
async function refusalAt(port: string): Promise<string> {
  const { child, log, exited } = notifyAt(port);
  running.push(child);
  expect(await exited).toBe(1);
  return String(log.find(({ msg }) => msg === 'start_failed')?.['error']);
}

function notifyAt(port: string) {
  const child = spawnService(['src/notify/main.ts'], {
    PATH: process.env['PATH'],
    NOTIFY_DATA_DIR: join(dir, 'notify'),
    NOTIFY_INTERNAL_PORT: '0',
    NOTIFY_CLIENT_PORT: '0',
    NOTIFY_METRICS_PORT: port,
    NOTIFY_DRAIN_MS: '0',
  });
  const service = watchService(child, {
    see: ({ listener, port: bound }) =>
      listener === 'metrics' && typeof bound === 'number' ? String(bound) : undefined,
  });
  service.ready.catch(() => undefined); // told by its end
  return service;
}

test('a port that another program has is refused with its process and command', async () => {
  const server = spawn(process.execPath, ['-e', SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
  running.push(server);
  const [first] = (await once(server.stdout, 'data')) as [Buffer];
  const told = await refusalAt(first.toString().trim());
  expect(told).toContain('EADDRINUSE');
  expect(told).toContain(`taken by process ${server.pid}: ${process.execPath} -e`);
});

test('one of our own, which hides what it has open, is named as well', async () => {
  const service = notifyAt('0');
  running.push(service.child);
  const told = await refusalAt(await service.ready);
  // Whoever may look into it is sure; several that hide are all named, up to four.
  const isListed = told.includes(`process ${service.child.pid}: `) || told.includes(', …)');
  expect(isListed, told).toBe(true);
});
