/**
 * Compares every loaded index of a running instance with what is stored, both ways, at once:
 * npm run fsck [-- --url http://HOST:9090]
 * Takes the settings of the service: its metrics port, where no URL is given, and its token. Ends with 0 when all agree, 1 when
 * an index differed (it was loaded again), 2 when something could not be compared or the instance not be asked.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadConfigOrExit } from '../src/config/load-config-or-exit.ts';
import type { Config } from '../src/config/options.ts';
import { CallerScopes } from '../src/gateway/callers/caller-scopes.ts';
import { parseCallersFile } from '../src/gateway/callers/callers-file.ts';
import { FSCK_RULES } from '../src/gateway/callers/method-rules.ts';
import type { FsckReport } from '../src/gateway/fsck-routes.ts';

const POLL_MS = 200;

const { values } = parseArgs({ options: { url: { type: 'string' } } });
const config = loadConfigOrExit();
const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host;
const authority = host.includes(':') ? `[${host}]` : host;
const url = new URL('/fsck', values.url ?? `http://${authority}:${config.metricsPort}`);
const token = tokenOf(config);
const headers: Readonly<Record<string, string>> =
  token === undefined ? {} : { authorization: `Bearer ${token}` };

/** A service token, or one of a caller that may do this. */
function tokenOf({ serviceAuthTokens, callers, defaultProjectId }: Config): string | undefined {
  const [first] = serviceAuthTokens;
  if (first !== undefined || callers === undefined) return first;
  return parseCallersFile(callers)
    .callers.filter(({ scopes }) => {
      const compiled = new CallerScopes(scopes, defaultProjectId);
      return Object.values(FSCK_RULES).every((rule) => compiled.admit(rule, rule.placeOf()));
    })
    .flatMap(({ tokens }) => tokens)[0];
}

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
