import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startProcess } from './run-process.ts';
import { sweepProcesses } from './sweep.ts';

/** Pids whose environment carries `id`, as an independent look at /proc says. */
function carriers(id: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        const entries = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
        return entries.includes(`RUNNER_TRACKING_ID=${id}`);
      } catch {
        return false;
      }
    });
}

async function leave(id: string, script: string): Promise<string> {
  let text = '';
  const running = startProcess({
    file: 'bash',
    args: ['-c', script],
    cwd: tmpdir(),
    env: { PATH: process.env['PATH'] ?? '' },
    trackingId: id,
    onChunk(chunk) {
      text += chunk.toString();
      return undefined;
    },
  });
  await running.exit;
  return text;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    await sleep(2);
  }
}

describe.skipIf(process.platform !== 'linux')('sweepProcesses', () => {
  test('kills what moved to other sessions, and nothing of another id', async () => {
    const id = `github_${randomUUID()}`;
    const other = `${id}0`;
    await leave(
      id,
      'setsid sleep 300 & setsid -f sleep 300; (setsid bash -c "sleep 300; :" &) ; sleep 300 &',
    );
    await leave(other, 'setsid -f sleep 300');
    await until(() => carriers(id).length >= 5 && carriers(other).length === 1);
    expect(await sweepProcesses(id)).toBeGreaterThanOrEqual(5);
    expect(carriers(id)).toEqual([]);
    expect(carriers(other)).toHaveLength(1);
    expect(await sweepProcesses(other)).toBe(1);
  });

  test('outruns processes that fork and end all the time', async () => {
    const id = `github_${randomUUID()}`;
    // Each link of a chain starts the next and ends: none lives for longer than a moment.
    const link = `link() { sleep 0.0$((RANDOM % 5)); link & }; export -f link;`;
    await leave(id, `${link} for i in 1 2 3; do setsid bash -c link > /dev/null 2>&1 & done`);
    await until(() => carriers(id).length >= 3);
    expect(await sweepProcesses(id)).toBeGreaterThan(0);
    await sleep(50);
    expect(carriers(id)).toEqual([]);
  });

  test('kills children that cleared their environment while their parent lives', async () => {
    const id = `github_${randomUUID()}`;
    const text = await leave(
      id,
      'setsid bash -c "env -i sleep 300 & echo \\$!; wait" 2> /dev/null & sleep 0.2',
    );
    const bare = Number.parseInt(text, 10);
    expect(bare).toBeGreaterThan(1);
    await sweepProcesses(id);
    await until(() => !readdirSync('/proc').includes(String(bare)) || isZombie(bare));
  });

  test('finds nothing where nothing is', async () => {
    expect(await sweepProcesses(`github_${randomUUID()}`)).toBe(0);
  });
});

function isZombie(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    return true;
  }
}
