import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, readdirSync, writeSync } from 'node:fs';
import { expect, test } from 'vitest';
import { takeNamedPipe } from './output-pipe.ts';

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
