import { spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const TENANTS = 15_000;
const TUPLES = 20;
const LIMIT_MIB = 24;
/** Node.js with the modules of a worker, before anything is loaded, and what a test machine adds. */
const PROCESS_MIB = 150;
const GROUPS = '/sys/fs/cgroup/memory';

type Figures = {
  readonly held: number;
  readonly bytesEach: number;
  readonly indexBytes: number;
};

/** A control group of memory with a limit, where this process may make one; null elsewhere. */
function limitedGroup(limitMib: number): string | null {
  const group = join(GROUPS, `gatehouse-test-${process.pid}`);
  try {
    accessSync(GROUPS, constants.W_OK);
    mkdirSync(group);
    writeFileSync(join(group, 'memory.limit_in_bytes'), String(limitMib * 1024 * 1024));
    return group;
  } catch {
    // Version 2, a read-only mount, or no rights: the limit of the heap is then the only one.
    return null;
  }
}

/** The worker's host in a process of its own, whose memory is limited: by the kernel where that can be, and its heap. */
async function churn(group: string | null): Promise<Figures> {
  const heap = `--max-old-space-size=${LIMIT_MIB * 2}`;
  const args = [process.execPath, heap, '--expose-gc', 'bench/small-tenants.ts'];
  const numbers = [TENANTS, LIMIT_MIB, TUPLES].map(String);
  const enter = group === null ? '' : `echo $$ > ${join(group, 'cgroup.procs')} && `;
  const child = spawn('sh', ['-c', `${enter}exec "$@"`, 'sh', ...args, ...numbers], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(code).toBe(0);
  return JSON.parse(text) as Figures;
}

test('thousands of tenants go through a worker that has room for few, within its limit', async () => {
  const group = limitedGroup(PROCESS_MIB + LIMIT_MIB * 1.25);
  try {
    const figures = await churn(group);
    // Far more came than fit.
    expect(figures.held).toBeLessThan(TENANTS / 2);
    expect(figures.held).toBeGreaterThan(TENANTS / 10);
    expect(figures.bytesEach).toBeLessThan(2_048 + 60 * TUPLES);
    expect(figures.indexBytes).toBeLessThanOrEqual(LIMIT_MIB * 1024 * 1024);
  } finally {
    if (group !== null) rmdirSync(group);
  }
}, 120_000);
