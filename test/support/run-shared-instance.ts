/**
 * The authorization service that files share (global-instance.ts starts it): takes the database as JSON, begins on
 * the message `start`, and ends on `stop`.
 */
import { assert } from '../../src/shared/assert.ts';
import type { PostgresTarget } from '../../src/store/postgres/pool.ts';
import { startInstance } from './start-instance.ts';

/** Where it is, once it serves. */
export type SharedReady = {
  readonly baseUrl: string;
  readonly generalUrl: string;
  readonly metricsUrl: string;
  readonly token: string;
  readonly adminSecret: string;
  readonly pid: number;
};
/** What it says to the process that started it. */
export type SharedMessage = SharedReady | { readonly failure: string };

const FAILURES_MS = 50;

const target = JSON.parse(process.argv[2] ?? '') as PostgresTarget;
const send = (message: SharedMessage): void => void process.send?.(message);

async function run(): Promise<void> {
  const instance = await startInstance({ target });
  let sent = 0;
  const report = (): void => {
    for (; sent < instance.failures.length; sent++) {
      send({ failure: instance.failures[sent] ?? '' });
    }
  };
  const timer = setInterval(report, FAILURES_MS);
  process.on('message', (message) => {
    assert(message === 'stop', `no message but stop is known: ${String(message)}`);
    clearInterval(timer);
    void instance.stop().then(() => {
      report();
      process.disconnect();
    });
  });
  const { baseUrl, generalUrl, metricsUrl, token, adminSecret } = instance;
  send({ baseUrl, generalUrl, metricsUrl, token, adminSecret, pid: process.pid });
}

// Without the process that started it nobody would end it.
process.once('disconnect', () => process.exit());
process.once('message', () => void run());
