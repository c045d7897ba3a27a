import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import {
  closePipe,
  nativePipe,
  spawnNative,
  type NativeChild,
  type NativeRequest,
} from '../../../shared/process/native-spawn.ts';

/** Why a program was ended before its time: it wrote too much, took too long, or its caller left. */
export type CaptureStop = 'output' | 'timeout' | 'abort';

export type Captured = {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly stopped: CaptureStop | undefined;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
};

export type CaptureRequest = Omit<NativeRequest, 'stdoutFd' | 'stderrFd'> & {
  readonly timeoutMs: number;
  /** Of each stream. */
  readonly outputBytesMax: number;
  readonly signal?: AbortSignal | undefined;
};

/**
 * Runs a program and keeps what it writes. Resolves when it has ended and its output is closed, never
 * rejects. Undefined where programs cannot be started so (see spawnNative).
 */
export function captureNative(request: CaptureRequest): Promise<Captured> | undefined {
  const stdout = nativePipe();
  if (stdout === undefined) return undefined;
  const stderr = nativePipe();
  if (stderr === undefined) {
    closePipe(stdout);
    return undefined;
  }
  const child = spawnNative({ ...request, stdoutFd: stdout.writeFd, stderrFd: stderr.writeFd });
  if (child === undefined) {
    closePipe(stdout);
    closePipe(stderr);
    return undefined;
  }
  closeSync(stdout.writeFd);
  closeSync(stderr.writeFd);
  return capture(child, [stdout.readFd, stderr.readFd], request);
}

async function capture(
  child: NativeChild,
  [stdoutFd, stderrFd]: readonly [number, number],
  { timeoutMs, outputBytesMax, signal }: CaptureRequest,
): Promise<Captured> {
  let stopped: CaptureStop | undefined;
  let hasEnded = false;
  const stop = (why: CaptureStop): void => {
    stopped ??= why;
    if (!hasEnded) process.kill(-child.pid, 'SIGTERM');
  };
  const exit = new Promise<number | null>((resolve) => {
    child.onExit((code) => {
      hasEnded = true;
      resolve(code);
    });
  });
  const onAbort = (): void => stop('abort');
  signal?.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(() => stop('timeout'), timeoutMs);
  const onOverload = (): void => stop('output');
  const [exitCode, stdout, stderr] = await Promise.all([
    exit,
    readAll(stdoutFd, outputBytesMax, onOverload),
    readAll(stderrFd, outputBytesMax, onOverload),
  ]);
  clearTimeout(timer);
  signal?.removeEventListener('abort', onAbort);
  return { exitCode, stopped, stdout, stderr };
}

/** What comes until the end of the pipe; beyond `bytesMax` it is thrown away and reported once. */
function readAll(fd: number, bytesMax: number, onOverload: () => void): Promise<Buffer> {
  const socket = new Socket({ fd, readable: true, writable: false });
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      const wasFine = bytes <= bytesMax;
      bytes += chunk.byteLength;
      if (bytes <= bytesMax) chunks.push(chunk);
      else if (wasFine) onOverload();
    });
    // A read error of a pipe is its end.
    socket.once('error', () => socket.destroy());
    socket.once('close', () => resolve(Buffer.concat(chunks)));
  });
}
