import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { startEmbeddedPostgres } from '../../../src/store/embedded/embedded-postgres.ts';
import { type LogLine, spawnService, watchService } from '../../support/child-service.ts';
import { urlOf } from '../../support/postgres-admin.ts';
import { createTestDatabase } from '../../support/postgres.ts';

/** A running notification service of the test's own, as a child process. */
export interface NotifyProcess {
  readonly internalUrl: string;
  readonly clientUrl: string;
  readonly metricsUrl: string;
  readonly pid: number;
  /** Everything on stderr so far, line by line. */
  readonly rawLog: readonly string[];
  readonly log: readonly LogLine[];
  /** Settles with the exit code when the process has ended (null: by a signal). */
  readonly exited: Promise<number | null>;
  signal(signal: NodeJS.Signals): void;
  /** The lines with this event name. */
  events(msg: string): readonly LogLine[];
}

const LISTENERS = 3;
export const SERVICE_TOKEN = 'notify-test-token';

/** Takes what ends a process; outside of a test something that calls it when all is done. */
export type WhenDone = (undo: () => void | Promise<void>) => void;

/** What starts a service on an empty database of its own, with signing secrets sealed. */
const SEALED = { NOTIFY_SECRET_KEYS: 'a-key-of-these-tests' };

/**
 * The settings of an empty database, removed when the test ends: of the server that the run has, or where it has none, of an
 * embedded one.
 */
export async function freshDatabase(
  whenDone: WhenDone = onTestFinished,
): Promise<Readonly<Record<string, string>>> {
  const shared: unknown = inject('postgres');
  if (shared !== undefined) {
    const database = await createTestDatabase({ template: 'none', poolMax: 1 });
    whenDone(() => database.drop());
    return { ...SEALED, DATABASE_URL: urlOf(database.target) };
  }
  const dataDirectory = await mkdtemp(join(tmpdir(), 'gatehouse-notify-test-'));
  whenDone(() => rm(dataDirectory, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({ dataDirectory });
  whenDone(() => server.stop());
  return { ...SEALED, DATABASE_URL: urlOf(server.target) };
}

/** Settings of every service of these tests: free ports of the loopback, no pauses, webhooks to this machine. */
export const TEST_SETTINGS: Readonly<Record<string, string>> = {
  NOTIFY_HOST: '127.0.0.1',
  NOTIFY_INTERNAL_PORT: '0',
  NOTIFY_CLIENT_PORT: '0',
  NOTIFY_METRICS_PORT: '0',
  NOTIFY_SERVICE_AUTH_TOKENS: SERVICE_TOKEN,
  NOTIFY_DRAIN_MS: '0',
  NOTIFY_WEBHOOK_ALLOW_PRIVATE: 'true',
  NOTIFY_RETRY_BASE_MS: '20',
  NOTIFY_HEARTBEAT_MS: '600000',
};

/** Starts `src/notify/main.ts` without waiting for anything. '' unsets a setting. */
export function spawnNotify(
  env: Readonly<Record<string, string>> = {},
  whenDone: WhenDone = onTestFinished,
): ChildProcess {
  const child = spawnService(['src/notify/main.ts'], {
    PATH: process.env['PATH'] ?? '',
    ...TEST_SETTINGS,
    ...env,
  });
  whenDone(() => {
    child.kill('SIGKILL');
  });
  return child;
}

/**
 * Starts the service on free ports of the loopback and waits until all three listen; killed when the
 * test ends. Without DATABASE_URL in `env` it has a database of its own. Errors: throws with its last lines when it ends first.
 */
export async function startNotify(
  env: Readonly<Record<string, string>> = {},
  whenDone?: WhenDone,
): Promise<NotifyProcess> {
  const database = 'DATABASE_URL' in env ? {} : await freshDatabase(whenDone);
  const child = spawnNotify({ ...database, ...env }, whenDone);
  const urls = new Map<unknown, string>();
  const { rawLog, log, exited, ready } = watchService(child, {
    see: (entry) => {
      if (entry.msg !== 'server_listen') return undefined;
      urls.set(entry['listener'], `http://127.0.0.1:${String(entry['port'])}`);
      return urls.size === LISTENERS ? true : undefined;
    },
  });
  await ready;
  return {
    internalUrl: urls.get('internal') ?? '',
    clientUrl: urls.get('client') ?? '',
    metricsUrl: urls.get('metrics') ?? '',
    pid: child.pid ?? -1,
    rawLog,
    log,
    exited,
    signal: (signal) => {
      child.kill(signal);
    },
    events: (msg) => log.filter((line) => line.msg === msg),
  };
}

type Answer = {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
};

/**
 * A POST of JSON to a method of NotifyService, or of another service as `Service/Method`, with the service token; the parsed
 * answer.
 */
export async function call(
  service: Pick<NotifyProcess, 'internalUrl'>,
  method: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const path = method.includes('/') ? method : `NotifyService/${method}`;
  const response = await fetch(`${service.internalUrl}/notify.v1.${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${SERVICE_TOKEN}`,
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const parsed = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  return { status: response.status, body: parsed, headers: response.headers };
}

/** As `call`, for calls that must succeed. */
export async function mustCall(
  service: Pick<NotifyProcess, 'internalUrl'>,
  method: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  const answer = await call(service, method, body);
  if (answer.status !== 200) throw new Error(`${method}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Sends a notification to acme/ann over the live channel, or as `given` says; returns it as stored. */
export async function notify(
  service: Pick<NotifyProcess, 'internalUrl'>,
  given: Readonly<Record<string, unknown>> = {},
): Promise<Record<string, unknown>> {
  const request = {
    tenant_id: 'acme',
    user_id: 'ann',
    channels: ['CHANNEL_LIVE'],
    title: 'Build passed',
    ...given,
  };
  const { notification } = await mustCall(service, 'Notify', request);
  return notification as Record<string, unknown>;
}

/** The address of a new stream of a user. */
export async function streamUrl(
  service: Pick<NotifyProcess, 'internalUrl' | 'clientUrl'>,
  given: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const request = { tenant_id: 'acme', user_id: 'ann', device_type: 'web', ...given };
  const { token } = await mustCall(service, 'CreateStreamToken', request);
  return `${service.clientUrl}/v1/stream?access_token=${String(token)}`;
}

/** The value of one series by its exact text; NaN when it is not there. */
export async function series(
  service: Pick<NotifyProcess, 'metricsUrl'>,
  name: string,
): Promise<number> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? Number.NaN : Number(line.slice(name.length + 1));
}
