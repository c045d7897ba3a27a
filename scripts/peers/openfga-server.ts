import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { PeerModel, PeerTuple } from '../../src/language/peers/peer-model.ts';
import { openFgaJson } from './random-model.ts';
import { type QuestionBatch, referenceText } from './random-store.ts';

/** The version whose answers are compared. */
export const OPENFGA_VERSION = '1.22.1';
const READY_TIMEOUT_MS = 30_000;
/** Tuples of one of its writes, at most. */
const WRITE_MAX = 100;

/** What was answered: an allow, a deny, or an error with its text. */
export type PeerAnswer = { readonly allowed: boolean; readonly error: string };

/** The program by OPENFGA_BIN, on the PATH or where Go installs programs; undefined: it is not here. */
export function findOpenFga(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env['OPENFGA_BIN'];
  const folders = (env['PATH'] ?? '').split(path.delimiter).filter((folder) => folder !== '');
  const candidates =
    named !== undefined && named !== ''
      ? [named]
      : [...folders, ...goFolders(env)].map((folder) => path.join(folder, 'openfga'));
  return candidates.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch (error) {
      if (error instanceof Error) return false;
      throw error;
    }
  });
}

function goFolders({ GOBIN, GOPATH, HOME }: NodeJS.ProcessEnv): readonly string[] {
  const homes = [GOPATH, HOME === undefined ? undefined : path.join(HOME, 'go')];
  const folders = homes.flatMap((home) => (home ? [path.join(home, 'bin')] : []));
  return GOBIN ? [GOBIN, ...folders] : folders;
}

/** The version that a program of OpenFGA says it is; '' where it was built without one, as Go installs it. */
export function versionOf(program: string): string {
  const { stdout, stderr } = spawnSync(program, ['version'], { encoding: 'utf8' });
  return /version `v?(\d+\.\d+\.\d+)/.exec(stdout + stderr)?.[1] ?? '';
}

/** A running OpenFGA of one's own, over HTTP. */
export type OpenFgaServer = { readonly baseUrl: string; stop(): Promise<void> };

/** Starts a program with the store in its memory. Errors: throws when it is not ready in time, with what it wrote. */
export async function startOpenFga(program: string): Promise<OpenFgaServer> {
  const [http, grpc] = await freePorts(2);
  const child = spawn(
    program,
    [
      'run',
      '--datastore-engine=memory',
      `--http-addr=127.0.0.1:${http}`,
      `--grpc-addr=127.0.0.1:${grpc}`,
      '--playground-enabled=false',
      '--metrics-enabled=false',
      '--log-level=error',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data: Buffer) => (said = `${said}${data.toString()}`.slice(-4_000)));
  }
  const exited = new Promise<void>((done) => child.once('close', () => done()));
  const baseUrl = `http://127.0.0.1:${http}`;
  const endMs = performance.now() + READY_TIMEOUT_MS;
  while (!(await isReady(baseUrl))) {
    if (child.exitCode !== null || performance.now() > endMs) {
      child.kill('SIGKILL');
      throw new Error(`OpenFGA was not ready: ${said}`);
    }
    await pause(50);
  }
  return {
    baseUrl,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

async function isReady(baseUrl: string): Promise<boolean> {
  return await fetch(`${baseUrl}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** One store of a running OpenFGA. */
export class OpenFgaStore {
  readonly #url: string;
  readonly #modelIds: string[] = [];

  private constructor(url: string) {
    this.#url = url;
  }

  /** Makes a store. */
  static async create(baseUrl: string, name: string): Promise<OpenFgaStore> {
    const { status, body } = await post(`${baseUrl}/stores`, { name });
    if (status !== 201) throw new Error(`OpenFGA makes no store: ${JSON.stringify(body)}`);
    return new OpenFgaStore(`${baseUrl}/stores/${(body as { id: string }).id}`);
  }

  /** Writes a version; false where it is refused. */
  async writeModel(model: PeerModel): Promise<boolean> {
    const { status, body } = await post(`${this.#url}/authorization-models`, openFgaJson(model));
    if (status === 400) return false;
    this.#modelIds.push((body as { authorization_model_id: string }).authorization_model_id);
    return true;
  }

  /** Writes tuples by the latest version. Errors: throws where one is refused. */
  async write(tuples: readonly PeerTuple[]): Promise<void> {
    for (let from = 0; from < tuples.length; from += WRITE_MAX) {
      const { status, body } = await post(`${this.#url}/write`, {
        authorization_model_id: this.#modelIds.at(-1),
        writes: { tuple_keys: tuples.slice(from, from + WRITE_MAX).map(tupleJson) },
      });
      if (status !== 200) throw new Error(`OpenFGA refuses a tuple: ${JSON.stringify(body)}`);
    }
  }

  /** Asks what a batch asks, in its order. */
  async ask(batch: QuestionBatch): Promise<readonly PeerAnswer[]> {
    const { version, context, contextual, questions } = batch;
    const checks = questions.map(({ object, relation, subject }, at) => ({
      tuple_key: { user: referenceText(subject), relation, object: referenceText(object) },
      ...(contextual.length === 0
        ? {}
        : { contextual_tuples: { tuple_keys: contextual.map(tupleJson) } }),
      context,
      correlation_id: `q${at}`,
    }));
    const { status, body } = await post(`${this.#url}/batch-check`, {
      authorization_model_id: this.#modelIds[version],
      checks,
    });
    if (status !== 200) {
      const error = JSON.stringify(body);
      return questions.map(() => ({ allowed: false, error }));
    }
    const { result } = body as { result: Record<string, { allowed?: boolean; error?: unknown }> };
    return questions.map((_, at) => {
      const one = result[`q${at}`];
      const error = one?.error === undefined ? '' : JSON.stringify(one.error);
      return { allowed: one?.allowed === true, error };
    });
  }
}

function tupleJson({ object, relation, subject, condition, context }: PeerTuple): object {
  const key = { user: referenceText(subject), relation, object: referenceText(object) };
  return condition === undefined ? key : { ...key, condition: { name: condition, context } };
}

async function post(url: string, body: unknown): Promise<{ status: number; body: unknown }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  // A question that takes it too long has no answer; all else that fails there ends the comparison.
  const isAnswer = response.status < 500 || text.includes('deadline_exceeded');
  if (!isAnswer) throw new Error(`${url}: ${response.status} ${text}`);
  return { status: response.status, body: JSON.parse(text) as unknown };
}
