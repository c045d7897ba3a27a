import { loadConfig } from '../../../config/load-config.ts';
import { type Environment, thisMachine } from '../../../config/load-options.ts';
import type { Config } from '../../../config/options.ts';
import { AppError } from '../../../shared/app-error.ts';
import { lookAtBinaries, lookAtDataDirectory } from './data-directory-checks.ts';
import {
  lookAtClock,
  lookAtConnections,
  lookAtMigrations,
  lookAtServer,
} from './database-checks.ts';
import { databaseOf } from './database-session.ts';
import { lookAtInstance } from './instance-checks.ts';
import type { DoctorCheck } from './observation.ts';
import { instanceAt, lookAtPort } from './port-checks.ts';
import { lookAtRights } from './rights-checks.ts';
import { lookAtCallers, lookAtNode, lookAtSecretFiles, lookAtSettings } from './settings-checks.ts';
import { lookAtHttp1, lookAtMemory, lookAtOpenFiles, lookAtProcessors } from './system-checks.ts';

/** The checks for what `environment` sets. With settings that are wrong only those that need none. */
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
    { name: 'node', look: lookAtNode },
    { name: 'settings', look: () => lookAtSettings(environment, { config, machine, problems }) },
    { name: 'secret files', look: () => lookAtSecretFiles(environment) },
    { name: 'open files', look: lookAtOpenFiles },
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
    { name: 'callers', look: () => lookAtCallers(config) },
    { name: 'HTTP/1.1', look: () => lookAtHttp1(config) },
    { name: 'memory', look: () => lookAtMemory(config, machine) },
    { name: 'processors', look: () => lookAtProcessors(config, machine) },
    {
      name: 'port of calls',
      look: () => lookAtPort(host, connectPort, calls, 'GATEWAY_CONNECT_PORT'),
    },
    {
      name: 'port of metrics',
      look: () => lookAtPort(host, metricsPort, metrics, 'GATEWAY_METRICS_PORT'),
    },
    { name: 'running service', look: () => lookAtInstance(host, metricsPort, metrics) },
  ];
  if (databaseUrl === undefined) {
    return [
      ...common,
      { name: 'data directory', look: () => lookAtDataDirectory(dataDir, calls) },
      { name: 'embedded PostgreSQL', look: () => Promise.resolve(lookAtBinaries(dataDir)) },
    ];
  }
  const database = databaseOf(databaseUrl);
  return [
    ...common,
    { name: 'database', look: () => lookAtServer(database) },
    { name: 'database rights', look: () => database.use((client) => lookAtRights(client)) },
    {
      name: 'database connections',
      look: () => database.use((client) => lookAtConnections(client, config)),
    },
    { name: 'migrations', look: () => database.use((client) => lookAtMigrations(client)) },
    { name: 'clock', look: () => database.use((client) => lookAtClock(client)) },
  ];
}
