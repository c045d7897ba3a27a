import { loadConfig } from '../../../config/load-config.ts';
import { type Environment, thisMachine } from '../../../config/load-options.ts';
import type { Config } from '../../../config/options.ts';
import { AppError } from '../../../shared/app-error.ts';
import { checkBinaries, checkDataDirectory } from './data-directory-checks.ts';
import { checkClock, checkConnections, checkMigrations, checkServer } from './database-checks.ts';
import { databaseOf } from './database-session.ts';
import { checkInstance } from './instance-checks.ts';
import type { DoctorCheck } from './observation.ts';
import { instanceAt, checkPort } from './port-checks.ts';
import { checkRights } from './rights-checks.ts';
import { checkCallers, checkNode, checkSecretFiles, checkSettings } from './settings-checks.ts';
import { checkHttp1, checkMemory, checkOpenFiles, checkProcessors } from './system-checks.ts';

/**
 * The checks for the settings in `environment`. With wrong settings, only the checks that need
 * none.
 */
export function checksOf(environment: Environment): readonly DoctorCheck[] {
  const machine = thisMachine();
  let config: Config | undefined;
  let problems: readonly string[] = [];
  try {
    config = loadConfig(environment, machine);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    problems = error.message.split('\n');
  }
  const first: readonly DoctorCheck[] = [
    { name: 'node', run: checkNode },
    { name: 'settings', run: () => checkSettings(environment, { config, machine, problems }) },
    { name: 'secret files', run: () => checkSecretFiles(environment) },
    { name: 'open files', run: checkOpenFiles },
  ];
  if (config === undefined) return first;
  return [...first, ...checksWith(config, machine)];
}

function checksWith(
  config: Config,
  machine: ReturnType<typeof thisMachine>,
): readonly DoctorCheck[] {
  const { host, connectPort, metricsPort, databaseUrl, dataDir } = config;
  const calls = instanceAt(host, connectPort);
  const metrics = instanceAt(host, metricsPort);
  const common: readonly DoctorCheck[] = [
    { name: 'callers', run: () => checkCallers(config) },
    { name: 'HTTP/1.1', run: () => checkHttp1(config) },
    { name: 'memory', run: () => checkMemory(config, machine) },
    { name: 'processors', run: () => checkProcessors(config, machine) },
    {
      name: 'port of calls',
      run: () => checkPort(host, connectPort, calls, 'GATEWAY_CONNECT_PORT'),
    },
    {
      name: 'port of metrics',
      run: () => checkPort(host, metricsPort, metrics, 'GATEWAY_METRICS_PORT'),
    },
    { name: 'running service', run: () => checkInstance(host, metricsPort, metrics) },
  ];
  if (databaseUrl === undefined) {
    return [
      ...common,
      { name: 'data directory', run: () => checkDataDirectory(dataDir, calls) },
      { name: 'embedded PostgreSQL', run: () => Promise.resolve(checkBinaries(dataDir)) },
    ];
  }
  const database = databaseOf(databaseUrl);
  return [
    ...common,
    { name: 'database', run: () => checkServer(database) },
    { name: 'database rights', run: () => database.use((client) => checkRights(client)) },
    {
      name: 'database connections',
      run: () => database.use((client) => checkConnections(client, config)),
    },
    { name: 'migrations', run: () => database.use((client) => checkMigrations(client)) },
    { name: 'clock', run: () => database.use((client) => checkClock(client)) },
  ];
}
