import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { createLogger } from '../../src/observability/logger.ts';
import { createRunner, type Runner } from '../../src/runner/runner.ts';
import { loadRunnerSettings } from '../../src/runner/settings/settings.ts';
import { systemClock } from '../../src/shared/time/clock.ts';

export type TestRunner = {
  readonly runner: Runner;
  readonly url: string;
  readonly workspace: string;
  /** Lines of the log so far, parsed. */
  readonly logLines: () => readonly Record<string, unknown>[];
};

/** Takes what ends a thing once it is needed no more. */
export type WhenDone = (undo: () => void | Promise<void>) => void;

/**
 * For things that all tests of a file or `describe` share: they end after its last test, the newest first. Call it
 * while these are collected, and what makes the things in `beforeAll`.
 */
export function afterLastTest(): WhenDone {
  const undos: (() => void | Promise<void>)[] = [];
  afterAll(async () => {
    for (const undo of undos.toReversed()) await undo();
  });
  return (undo) => void undos.push(undo);
}

/** A folder with these files (path → text); a git repository with one commit when `isGit`. */
export function makeWorkspace(
  files: Readonly<Record<string, string>>,
  isGit = false,
  whenDone: WhenDone = onTestFinished,
): string {
  const workspace = mkdtempSync(join(tmpdir(), 'gatehouse-runner-'));
  whenDone(() => rmSync(workspace, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(workspace, path)), { recursive: true });
    writeFileSync(join(workspace, path), text);
  }
  if (isGit) {
    const git = (...args: readonly string[]): void => {
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
        cwd: workspace,
        stdio: 'ignore',
      });
    };
    git('init', '-q', '-b', 'main');
    git('add', '-A');
    git('commit', '-qm', 'first');
  }
  return workspace;
}

/**
 * A runner of its own on a free port, stopped when the test ends, or as `whenDone` says. `env` are settings by variable, `own`
 * what differs from the environment of the tests, of which the runner gives steps a part.
 */
export async function startRunner(
  workspace: string,
  env: Readonly<Record<string, string>> = {},
  pingMs?: number,
  own: Readonly<Record<string, string>> = {},
  whenDone: WhenDone = onTestFinished,
): Promise<TestRunner> {
  const lines: string[] = [];
  const settings = loadRunnerSettings({
    PORT: '0',
    HOST: '127.0.0.1',
    RUNNER_WORKSPACE: workspace,
    RUNNER_DISK_FLOOR_BYTES: '0',
    RUNNER_INSTALL_TOOLS: 'false',
    ...env,
  });
  const configHome = mkdtempSync(join(tmpdir(), 'gatehouse-config-'));
  const runner = await createRunner(settings, {
    logger: createLogger('debug', { write: (line) => void lines.push(line) }),
    version: '0.0.0-test',
    clock: systemClock,
    environment: { ...process.env, XDG_CONFIG_HOME: configHome, ...own },
    pingMs,
  });
  whenDone(async () => {
    await runner.stop();
    rmSync(configHome, { recursive: true, force: true });
  });
  return {
    runner,
    workspace,
    url: `http://127.0.0.1:${runner.port}`,
    logLines: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

/** Starts a run and returns its id. */
export async function startRun(
  url: string,
  workflow: string,
  inputs?: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const response = await fetch(`${url}/api/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ workflow, inputs }),
  });
  if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
  return ((await response.json()) as { id: string }).id;
}

/** Resolves with the run once it has ended. */
export async function runEnded(
  url: string,
  id: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: string; conclusion: string; [key: string]: unknown }> {
  for (;;) {
    const response = await fetch(`${url}/api/runs/${id}`, { headers });
    const run = (await response.json()) as { completedAt?: string } & Record<string, unknown>;
    if (run.completedAt !== undefined) {
      return run as { status: string; conclusion: string };
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Sends raw bytes on a connection of its own and returns all that comes back until it is quiet. */
export function rawRequest(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      if (isWhole(received, text.startsWith('HEAD '))) socket.destroy();
    });
    socket.on('close', () => resolve(received));
    socket.on('error', reject);
    socket.write(text);
  });
}

/** A head and as much body as it states. */
function isWhole(text: string, isHead: boolean): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0 || isHead) return end >= 0;
  const length = /^content-length: (\d+)/im.exec(text.slice(0, end));
  return length === null ? true : text.length >= end + 4 + Number(length[1]);
}
