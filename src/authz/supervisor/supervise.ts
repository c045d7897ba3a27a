import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config/load-config.ts';
import { type Environment, thisMachine } from '../../config/load-options.ts';
import type { Config } from '../../config/options.ts';
import { eventLogOf, localUrl, type Logger, reportToTerminal } from '../../observability/logger.ts';
import { onStopSignals } from '../../shared/process/stop-signals.ts';
import { InstanceSupervisor } from './instance-supervisor.ts';

const INSTANCES_MAX = 64;
/** Without SIGHUP, by which operators have the instances replaced. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * The number after `--instances`; undefined: this process is the instance. Errors: throws, with what is
 * accepted, for anything else in `args`.
 */
export function instancesOf(args: readonly string[]): number | undefined {
  const { values } = parseArgs({ args: [...args], options: { instances: { type: 'string' } } });
  if (values.instances === undefined) return undefined;
  const count = Number(values.instances);
  if (!/^\d+$/.test(values.instances) || count < 1 || count > INSTANCES_MAX) {
    throw new Error(`--instances must be a whole number from 1 to ${INSTANCES_MAX}`);
  }
  return count;
}

/**
 * Settings that each of `count` instances gets beside the environment: its share of the processors
 * and of the memory, where nothing else is set.
 */
export function shareOf(
  count: number,
  env: Environment,
  cpuCount: number,
  memoryBytes: number,
): Readonly<Record<string, string>> {
  const share: Record<string, string> = {};
  if ((env['GATEWAY_WORKERS'] ?? '') === '') {
    // One of the processors is for the gateway's thread.
    share['GATEWAY_WORKERS'] = String(Math.max(1, Math.floor(cpuCount / count) - 1));
  }
  if ((env['GATEWAY_INDEX_BYTES'] ?? '') === '') {
    const bytes = Math.floor(memoryBytes / 2 / count);
    share['GATEWAY_INDEX_BYTES'] = String(Math.max(bytes, 16 * 1024 * 1024));
  }
  // The start of each instance then checks the connections of all together.
  if ((env['GATEWAY_INSTANCES'] ?? '') === '') share['GATEWAY_INSTANCES'] = String(count);
  return share;
}

/**
 * Runs `count` instances until a signal, or the end of the npm that runs it: SIGTERM and SIGINT drain all, SIGHUP replaces
 * them one by one.
 * `fail` logs and ends the process.
 */
export async function supervise(
  count: number,
  logger: Logger,
  fail: (event: string, cause: unknown) => never,
): Promise<void> {
  const log = eventLogOf(logger);
  const share = shareOf(count, process.env, availableParallelism(), thisMachine().memoryBytes);
  const config: Config = loadConfig({ ...process.env, ...share });
  // Instances may have another directory at hand than this process.
  const env = { ...share, GATEWAY_DATA_DIR: resolve(config.dataDir) };
  logger.info({ pid: process.pid, instances: count }, 'starting');
  let running: InstanceSupervisor | undefined;
  const starting = InstanceSupervisor.start({ count, config, env, log });
  const stop = (signal: string): void => {
    logger.info({ signal }, 'stopping');
    starting
      .then((supervisor) => supervisor.stop())
      .then(
        () => {
          logger.info('stopped');
          process.exit(0);
        },
        (error: unknown) => fail('stop_failed', error),
      );
  };
  const force = (signal: string): void => {
    running?.force();
    fail('stop_forced', new Error(`${signal} came again`));
  };
  onStopSignals({ stop, force }, STOP_SIGNALS);
  process.on('SIGHUP', () => {
    logger.info('replacing');
    starting
      .then((supervisor) => supervisor.replaceAll())
      .catch((error: unknown) => log('error', 'replace_failed', { error: String(error) }));
  });
  const supervisor = await starting.catch((error: unknown) => fail('start_failed', error));
  running = supervisor;
  const { port, metricsPorts, pids } = supervisor;
  const fields = { port, metrics_ports: metricsPorts, host: config.host, pid: process.pid, pids };
  logger.info(fields, 'ready');
  reportToTerminal(`ready at ${localUrl(config.host, port)}, with ${count} instances`);
}
