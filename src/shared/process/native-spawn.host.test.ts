import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { closePipe, nativePipe, spawnNative, type NativeRequest } from './native-spawn.ts';

type Request = Omit<NativeRequest, 'stdoutFd' | 'stderrFd'>;
type Result = {
  readonly code: number | null;
  readonly signal: string | null;
  readonly text: string;
};

const PATH = process.env['PATH'] ?? '';
const isGlibc = process.platform === 'linux' && nativePipe() !== undefined;

function makeFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-spawn-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Undefined when the program was not started. */
async function run(request: Request): Promise<Result | undefined> {
  const pipe = nativePipe();
  if (pipe === undefined) throw new Error('no pipe');
  const { writeFd } = pipe;
  const child = spawnNative({ ...request, stdoutFd: writeFd, stderrFd: writeFd });
  if (child === undefined) {
    closePipe(pipe);
    return undefined;
  }
  closeSync(writeFd);
  const socket = new Socket({ fd: pipe.readFd, readable: true, writable: false });
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const closed = once(socket, 'close');
  const exit = await new Promise<Omit<Result, 'text'>>((resolve) => {
    child.onExit((code, signal) => resolve({ code, signal }));
  });
  await closed;
  return { ...exit, text };
}

function script(text: string, more: Partial<Request> = {}): Promise<Result | undefined> {
  return run({ file: 'sh', args: ['-c', text], cwd: '/', env: { PATH }, ...more });
}

describe.skipIf(!isGlibc)('a program that is started without a copy of this process', () => {
  test('has its arguments, folder, environment and no more', async () => {
    const cwd = makeFolder();
    const args = [
      '-c',
      'printf "%s|" "$@"; pwd; echo "$GIVEN"; env | wc -l',
      'sh',
      '',
      'ä b',
      '$x',
    ];
    const result = await run({ file: 'sh', args, cwd, env: { PATH, GIVEN: 'grün\n=' } });
    expect(result?.text.split('\n').slice(0, 3)).toEqual([`|ä b|$x|${cwd}`, 'grün', '=']);
    expect(result).toMatchObject({ code: 0, signal: null });
    expect(await run({ file: 'env', args: [], cwd, env: { PATH } })).toMatchObject({
      text: `PATH=${PATH}\n`,
    });
  });

  test('tells how it ended', async () => {
    expect(await script('exit 37')).toMatchObject({ code: 37, signal: null });
    expect(await script('kill -TERM $$')).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  test('leads a session, reads nothing, and no signal is blocked or ignored', async () => {
    const text = 'read line; echo "read $?"; echo "$$ $(ps -o sid= -o pgid= -p $$)"';
    const lines = (await script(text))?.text.split('\n') ?? [];
    expect(lines[0]).toBe('read 1');
    const [pid, ...groups] = (lines[1] ?? '').trim().split(/\s+/);
    expect(groups).toEqual([pid, pid]);
    const signals = await script("grep -E '^Sig(Blk|Ign)' /proc/self/status");
    expect(signals?.text).toBe('SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
  });

  test('both streams arrive in the order written, and files of this process are closed', async () => {
    expect((await script('echo 1; echo 2 >&2; echo 3'))?.text).toBe('1\n2\n3\n');
    const ours = openSync('/dev/null', 'r');
    onTestFinished(() => closeSync(ours));
    const open = (await script('ls -l /proc/self/fd'))?.text ?? '';
    expect(open).toMatch(/ 0 -> \/dev\/null$/m);
    expect(open).not.toMatch(new RegExp(` ${ours} -> /dev/null$`, 'm'));
  });

  test('is found on the PATH of its own environment, relative to its folder', async () => {
    const cwd = makeFolder();
    mkdirSync(join(cwd, 'bin'));
    writeFileSync(join(cwd, 'bin', 'hello'), '#!/bin/sh\necho hello\n', { mode: 0o755 });
    const found = { args: [], cwd, env: { PATH: `/nowhere:bin` } };
    expect((await run({ file: 'hello', ...found }))?.text).toBe('hello\n');
    expect((await run({ file: './bin/hello', ...found, env: {} }))?.text).toBe('hello\n');
    expect(await run({ file: 'hello', args: [], cwd, env: { PATH } })).toBeUndefined();
  });

  test('what cannot be started is left to Node', async () => {
    const cwd = makeFolder();
    writeFileSync(join(cwd, 'no-program'), 'text');
    writeFileSync(join(cwd, 'no-shebang'), 'echo text', { mode: 0o755 });
    for (const file of ['/nowhere/x', join(cwd, 'no-program'), join(cwd, 'no-shebang'), cwd]) {
      expect(await run({ file, args: [], cwd, env: { PATH } })).toBeUndefined();
    }
    expect(await script('true', { cwd: join(cwd, 'nowhere') })).toBeUndefined();
    expect(await script('a\0b')).toBeUndefined();
    expect(await script('true', { env: { PATH, LONG: 'x'.repeat(4_000_000) } })).toBeUndefined();
  });

  test('many at once, beside those that Node waits for, each with its own end', async () => {
    const ours = Array.from({ length: 40 }, (_, index) => script(`exit ${index}`));
    const theirs = Array.from({ length: 10 }, async (_, index) => {
      const [code] = (await once(spawn('sh', ['-c', `exit ${index}`]), 'exit')) as [number];
      return code;
    });
    expect(spawnSync('sh', ['-c', 'exit 5']).status).toBe(5);
    expect((await Promise.all(ours)).map((result) => result?.code)).toEqual(
      Array.from({ length: 40 }, (_, index) => index),
    );
    expect(await Promise.all(theirs)).toEqual(Array.from({ length: 10 }, (_, index) => index));
  });
});
