import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import type { PostgresTarget } from '../../src/store/postgres/pool.ts';
import { asAdmin, cloneInto, withDatabase } from './postgres-admin.ts';
import type { SharedMessage, SharedReady } from './run-shared-instance.ts';

const PROGRAM = fileURLToPath(new URL('run-shared-instance.ts', import.meta.url));
const SOURCE_CACHE = fileURLToPath(new URL('../../scripts/source-cache.mjs', import.meta.url));

/** The instance of the moment: its process, and what it says when it is ready. */
type Running = {
  readonly child: ChildProcess;
  readonly ready: Promise<SharedReady>;
};

/**
 * One authorization service for all files of a run that only need a project of it; see shared-instance.ts. The
 * first file that asks starts it. One that ended is started anew on another database for the next file, and the
 * file that asks for the failures hears that it ended.
 */
export default async function setup(
  project: Pick<TestProject, 'getProvidedContext' | 'provide'>,
): Promise<() => Promise<void>> {
  const { admin, template } = project.getProvidedContext().postgres;
  const failures: string[] = [];
  const databases: string[] = [];
  let running: Running | undefined;
  let isStopping = false;

  function start(): Running {
    const database = `shared_${process.pid}_${databases.length}`;
    databases.push(database);
    const target = withDatabase(admin, database);
    const child = fork(PROGRAM, [JSON.stringify(target)], {
      execArgv: ['--import', SOURCE_CACHE],
      env: { PATH: process.env['PATH'] ?? '', DEBUG_ASSERTIONS: '1' },
    });
    const started: Running = { child, ready: readyOf(child, failures) };
    started.ready.catch(() => undefined);
    child.once('exit', (code, signal) => {
      if (!isStopping) failures.push(`the shared instance ended with ${code ?? signal}`);
      if (running === started) running = undefined;
    });
    cloneInto(database, template, admin).then(
      () => child.send('start'),
      (error: unknown) => {
        failures.push(String(error));
        child.kill('SIGKILL');
      },
    );
    return started;
  }

  const server = createServer((request, response) => {
    const answer =
      request.url === '/failures'
        ? Promise.resolve(failures.splice(0))
        : (running ??= start()).ready;
    answer.then(
      (body) => response.end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  project.provide('sharedInstance', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    isStopping = true;
    server.close();
    server.closeAllConnections();
    if (running !== undefined) await stopped(running.child);
    for (const name of databases) await drop(admin, name);
    if (failures.length > 0) throw new Error(`the shared instance failed:\n${failures.join('\n')}`);
  };
}

/** Its first message; all further ones are failures. Rejects when it ends before. */
async function readyOf(child: ChildProcess, failures: string[]): Promise<SharedReady> {
  const { promise, resolve, reject } = Promise.withResolvers<SharedReady>();
  child.on('message', (message: SharedMessage) => {
    if ('failure' in message) failures.push(message.failure);
    else resolve(message);
  });
  child.once('exit', (code, signal) =>
    reject(new Error(`the shared instance did not start: ${code ?? signal}`)),
  );
  return await promise;
}

async function stopped(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.send('stop');
  await exited;
}

async function drop(admin: PostgresTarget, name: string): Promise<void> {
  await asAdmin(admin, `drop database if exists ${name} with (force)`);
}
