import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { stringify } from 'yaml';
import { type PrometheusConfig, readYaml } from './deploy-files.ts';

/** A Prometheus of the test's own. */
export interface PrometheusServer {
  /** The `data` of an answer of its API. Errors: throws with the error that it tells. */
  get<T>(path: string, parameters?: Readonly<Record<string, string>>): Promise<T>;
  stop(): Promise<void>;
}

const FOLDER = 'deploy/prometheus';

/** The committed configuration and rules, with other targets by job, and scrapes every other second. */
export async function startPrometheus(
  targets: Readonly<Record<string, string>>,
): Promise<PrometheusServer> {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-prometheus-'));
  const config = readYaml(`${FOLDER}/prometheus.yml`) as PrometheusConfig;
  const rewritten = {
    ...config,
    global: { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '2s' },
    scrape_configs: config.scrape_configs.map((job) => ({
      ...job,
      dns_sd_configs: [],
      static_configs: [{ targets: [targets[job.job_name]] }],
    })),
  };
  for (const file of config.rule_files) cpSync(join(FOLDER, file), join(dir, file));
  writeFileSync(join(dir, 'prometheus.yml'), stringify(rewritten));
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      '--web.listen-address=127.0.0.1:0',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
    rmSync(dir, { recursive: true, force: true });
  };
  const url = await addressOf(child).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    get: async <T>(path: string, parameters: Readonly<Record<string, string>> = {}) => {
      const response = await fetch(`${url}/api/v1/${path}`, {
        method: Object.keys(parameters).length > 0 ? 'POST' : 'GET',
        ...(Object.keys(parameters).length > 0 ? { body: new URLSearchParams(parameters) } : {}),
      });
      const answer = (await response.json()) as { status: string; error?: string; data: T };
      if (answer.status !== 'success') throw new Error(answer.error);
      return answer.data;
    },
    stop,
  };
}

/** It says the port that it took in its log. */
function addressOf(child: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const lines: string[] = [];
  if (child.stderr === null) throw new Error('stderr of prometheus must be a pipe');
  let address = '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(line);
    address = /msg="Listening on" address=(\S+)/.exec(line)?.[1] ?? address;
    if (line.includes('Server is ready') && address !== '') resolve(`http://${address}`);
  });
  child.once('exit', (code) => {
    reject(new Error(`prometheus ended with ${code}:\n${lines.slice(-20).join('\n')}`));
  });
  return promise;
}
