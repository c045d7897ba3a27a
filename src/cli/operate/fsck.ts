import { setTimeout as sleep } from 'node:timers/promises';
import { usage } from '../../command-line/parse-words.ts';
import { loadConfig } from '../../config/load-config.ts';
import type { Config } from '../../config/options.ts';
import { CallerScopes } from '../../gateway/callers/caller-scopes.ts';
import { parseCallersFile } from '../../gateway/callers/callers-file.ts';
import { FSCK_RULES } from '../../gateway/callers/method-rules.ts';
import type { FsckReport } from '../../gateway/fsck-routes.ts';
import { request } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { hostOfUrl, type ServiceConnection, serviceUrl } from '../core/connection.ts';
import { EXIT_NO, EXIT_OK, EXIT_USAGE } from '../core/exit-codes.ts';
import { isSecret, readSecret } from '../core/files.ts';
import { integerOfOption } from '../core/json-values.ts';
import { showAnswer } from '../core/rows.ts';
import { answered, assertNoWords } from './words.ts';

const POLL_MS = 200;
const TIMEOUT_SECONDS = { default: 30, max: 86_400 } as const;

/**
 * `fsck`. Resolves to 1 if an index differed, 2 if something could not be compared.
 * Errors: INVALID_REQUEST, FILE_INVALID, CONFIG_INVALID; REFUSED if the instance refuses or does
 * not answer.
 */
export async function runFsck(line: CliLine): Promise<number> {
  assertNoWords(line);
  const instance = instanceOf(line);
  const report = await answered(() => compare(line, instance));
  const { shards, rows, differences, unfinished, seconds } = report;
  showAnswer(line, report, () => [
    `${shards} shards, ${rows} rows in ${seconds} s: ${differences} differed, ${unfinished} could not be compared`,
  ]);
  if (differences > 0) return EXIT_NO;
  return unfinished > 0 ? EXIT_USAGE : EXIT_OK;
}

async function compare(line: CliLine, instance: ServiceConnection): Promise<FsckReport> {
  const { notes } = line.screens;
  const { run } = await ask(instance, 'POST');
  const startedMs = performance.now();
  try {
    for (;;) {
      const report = await ask(instance, 'GET');
      if (report.run !== run || report.state !== 'running') return report;
      notes.status(`comparing, ${Math.round((performance.now() - startedMs) / 1000)} s`);
      await sleep(POLL_MS);
    }
  } finally {
    notes.status('');
  }
}

async function ask(instance: ServiceConnection, method: 'GET' | 'POST'): Promise<FsckReport> {
  const response = await request(instance, '/fsck', {
    method,
    signal: AbortSignal.timeout(instance.timeoutMs),
  });
  return (await response.json()) as FsckReport;
}

function instanceOf(line: CliLine): ServiceConnection {
  const config = loadConfig(line.environment);
  const urls = line.texts('url');
  if (urls.length > 1) throw usage('--url: name one instance');
  const path = line.text('token-file');
  const given = line.environment['GATEHOUSE_TOKEN'] ?? '';
  if (given !== '' && !isSecret(given)) {
    throw usage('GATEHOUSE_TOKEN: must be printable ASCII without spaces');
  }
  const own = path === undefined ? given : readSecret(path);
  const timeout = integerOfOption('timeout', line.text('timeout'), 1, TIMEOUT_SECONDS.max);
  return {
    url: serviceUrl(urls[0] ?? `http://${hostOfUrl(config.host)}:${config.metricsPort}`),
    project: '',
    tenant: '',
    token: own === '' ? tokenOf(config) : own,
    adminSecret: undefined,
    timeoutMs: (timeout ?? TIMEOUT_SECONDS.default) * 1000,
  };
}

/** A service token, or the token of a caller with the right to run fsck. */
function tokenOf({ serviceAuthTokens, callers, defaultProjectId }: Config): string | undefined {
  const [first] = serviceAuthTokens;
  if (first !== undefined || callers === undefined) return first;
  return parseCallersFile(callers)
    .callers.filter(({ scopes }) => {
      const compiled = new CallerScopes(scopes, defaultProjectId);
      return Object.values(FSCK_RULES).every((rule) => compiled.admit(rule, rule.targetOf()));
    })
    .flatMap(({ tokens }) => tokens)[0];
}
