import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { scriptInProcess } from '../support/script-in-process.ts';

export type Ended = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** Runs a program to its end; `onStart` may send it a signal. Errors: rejects when there is no such program. */
export function run(
  program: string,
  args: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>;
    readonly onStart?: (signal: (name: NodeJS.Signals) => void) => void;
  } = {},
): Promise<Ended> {
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  options.onStart?.((name) => child.kill(name));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** `npm run load` without npm. */
export function load(args: readonly string[], options?: Parameters<typeof run>[2]): Promise<Ended> {
  return run(process.execPath, ['load/run.ts', ...args], options);
}

/** The same in this process, for what needs no signal. */
export async function loadInProcess(args: readonly string[]): Promise<Ended> {
  const { code = null, out, err } = await scriptInProcess('load/run.ts', args);
  return { code, stdout: out, stderr: err };
}

export type FakeAnswer = { readonly status: number; readonly body: object };

/** A service that gives the answers that `answerOf` has for a path. */
export async function startFake(
  answerOf: (path: string, server: Server) => FakeAnswer | Promise<FakeAnswer>,
) {
  const server = createServer((request, response) => {
    request.resume();
    void Promise.resolve(answerOf(request.url ?? '', server)).then(({ status, body }) => {
      const text = JSON.stringify(body);
      response.writeHead(status, { 'content-length': text.length });
      response.end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
