import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  fstatSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { takeNamedPipe } from './output-pipe.ts';
import { makeProcessFolder } from './process-folder.ts';

const MEMORY_FOLDER = '/dev/shm';

test('pipes carry bytes, end with their last writer, and never run out', async () => {
  for (let index = 0; index < 150; index += 1) {
    const pipe = takeNamedPipe();
    if (pipe === undefined) {
      throw new Error('no pipe');
    }
    expect(fstatSync(pipe.writeFd).isFIFO()).toBe(true);
    const closed = once(pipe.reader, 'close');
    let text = '';
    pipe.reader.on('data', (chunk: Buffer) => (text += chunk.toString()));
    writeSync(pipe.writeFd, `number ${index}`);
    closeSync(pipe.writeFd);
    await closed;
    expect(text).toBe(`number ${index}`);
  }
});

test.skipIf(process.platform !== 'linux')('what a killed process left is removed', async () => {
  const module = new URL('output-pipe.ts', import.meta.url).href;
  const script = `const { takeNamedPipe } = await import(${JSON.stringify(module)});
    takeNamedPipe(); console.log('up'); setInterval(() => {}, 1000);`;
  const start = async (): Promise<{ pid: number | undefined; kill: () => Promise<unknown> }> => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    await once(child.stdout, 'data');
    const exited = once(child, 'exit');
    return {
      pid: child.pid,
      kill() {
        child.kill('SIGKILL');
        return exited;
      },
    };
  };
  const foldersOf = (pid: number | undefined): string[] =>
    readdirSync(MEMORY_FOLDER).filter((name) =>
      new RegExp(`^runner-pipes-\\d+-${pid}-`).test(name),
    );

  const first = await start();
  expect(foldersOf(first.pid)).toHaveLength(1);
  await first.kill();
  const second = await start();
  expect(foldersOf(first.pid)).toEqual([]);
  expect(foldersOf(second.pid)).toHaveLength(1);
  await second.kill();
  takeNamedPipe();
});

test.skipIf(process.platform !== 'linux' || process.getuid?.() !== 0)(
  "what another user's killed process left is not ours to remove, and does no harm",
  () => {
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    // No process has this number: it is above what the kernel gives out.
    const left = mkdtempSync(join(MEMORY_FOLDER, `left-over-${namespace}-99999999-`));
    chownSync(left, 65_534, 65_534);
    const made = makeProcessFolder(MEMORY_FOLDER, 'left-over-');
    expect(readdirSync(MEMORY_FOLDER)).toContain(left.slice(MEMORY_FOLDER.length + 1));
    rmSync(made, { recursive: true });
    chownSync(left, 0, 0);
    rmSync(makeProcessFolder(MEMORY_FOLDER, 'left-over-'), { recursive: true });
    expect(readdirSync(MEMORY_FOLDER)).not.toContain(left.slice(MEMORY_FOLDER.length + 1));
  },
);
