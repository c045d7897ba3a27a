/**
 * Compares every loaded index of a running instance with what is stored, both ways, at once:
 * npm run fsck [-- --url http://HOST:9090]
 * Takes the settings of the service: its metrics port, where no URL is given, and its token. Ends with 0 when all agree, 1 when
 * an index differed (it was loaded again), 2 when something could not be compared or the instance not be asked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadConfigOrExit } from '../src/config/load-config-or-exit.ts';
import type { FsckReport } from '../src/gateway/fsck-routes.ts';

const POLL_MS = 200;

const { values } = parseArgs({ options: { url: { type: 'string' } } });
const config = loadConfigOrExit();
const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host;
const authority = host.includes(':') ? `[${host}]` : host;
const url = new URL('/fsck', values.url ?? `http://${authority}:${config.metricsPort}`);
const [token] = config.serviceAuthTokens;
const headers: Readonly<Record<string, string>> =
  token === undefined ? {} : { authorization: `Bearer ${token}` };

async function ask(method: 'GET' | 'POST'): Promise<FsckReport> {
  const response = await fetch(url, { method, headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url.href} answered ${response.status}: ${text}`);
  return JSON.parse(text) as FsckReport;
}

try {
  const { run } = await ask('POST');
  let report = await ask('GET');
  while (report.run === run && report.state === 'running') {
    await sleep(POLL_MS);
    report = await ask('GET');
  }
  const { shards, rows, differences, unfinished, seconds } = report;
  process.stdout.write(
    `${shards} shards, ${rows} rows in ${seconds} s: ${differences} differed, ${unfinished} could not be compared\n`,
  );
  if (differences > 0) process.exitCode = 1;
  else if (unfinished > 0) process.exitCode = 2;
} catch (error) {
  process.stderr.write(`fsck: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
