import { stat } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Environment } from '../../../config/load-options.ts';
import type { Machine, OptionTable } from '../../../config/option.ts';
import { type Config, OPTIONS } from '../../../config/options.ts';
import { fileVariableOf } from '../../../config/secret-file.ts';
import { parseCallersFile } from '../../../gateway/callers/callers-file.ts';
import { messageOf } from '../../core/files.ts';
import { failure, fine, type Observation, warning } from './observation.ts';

/** The oldest Node.js that runs the service; scripts/ensure-installed.mjs has it, too. */
const NODE_MIN = { major: 22, minor: 18 } as const;
const RIGHT_TO_READ_OF_OTHERS = 0o004;
const RIGHT_TO_READ_OF_GROUP = 0o040;

/** Checks the Node.js of this process, which a service started in the same way would use. */
export function checkNode(): Promise<readonly Observation[]> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isOld = major < NODE_MIN.major || (major === NODE_MIN.major && minor < NODE_MIN.minor);
  const needed = `${NODE_MIN.major}.${NODE_MIN.minor}`;
  const seen = isOld
    ? failure(`${process.version} is too old`, `install Node.js ${needed} or newer, or run npm ci`)
    : fine(process.version);
  return Promise.resolve([seen]);
}

/** Result of `loadConfig` for the environment. */
export type LoadedSettings = {
  /** Undefined if there are problems. */
  readonly config: Config | undefined;
  readonly machine: Machine;
  readonly problems: readonly string[];
};

/**
 * Reports every problem of the settings, or the settings that differ from their defaults, without
 * secrets.
 */
export function checkSettings(
  environment: Environment,
  { config, machine, problems }: LoadedSettings,
): Promise<readonly Observation[]> {
  if (config === undefined) {
    const advice = 'put it right (docs/configuration.md); what needs settings was not looked at';
    return Promise.resolve(problems.map((problem) => failure(problem, advice)));
  }
  const byName: Readonly<Record<string, unknown>> = config;
  const table: OptionTable = OPTIONS;
  const changed = Object.entries(table).flatMap(([name, option]) => {
    const value = byName[name];
    if (isDeepStrictEqual(value, option.fallback(machine, byName))) return [];
    const file = environment[fileVariableOf(option.env)] ?? '';
    if (option.secret)
      return file === '' ? `${option.env}=set` : `${fileVariableOf(option.env)}=${file}`;
    return `${option.env}=${Array.isArray(value) ? value.join(',') : String(value)}`;
  });
  return Promise.resolve([fine(changed.length === 0 ? 'all by default' : changed.join(' '))]);
}

/** Checks that others cannot read the files that hold secrets. */
export async function checkSecretFiles(environment: Environment): Promise<readonly Observation[]> {
  const variables = Object.values(OPTIONS)
    .filter(({ secret }) => secret)
    .map(({ env }) => fileVariableOf(env))
    .filter((name) => (environment[name] ?? '') !== '');
  if (variables.length === 0) return [fine('none are set')];
  return await Promise.all(variables.map((name) => checkSecretFile(name, environment[name] ?? '')));
}

async function checkSecretFile(variable: string, path: string): Promise<Observation> {
  try {
    const { mode } = await stat(path);
    const rights = (mode & 0o777).toString(8).padStart(4, '0');
    const seen = `${variable}: ${path} has the rights ${rights}`;
    if ((mode & RIGHT_TO_READ_OF_OTHERS) !== 0) {
      return warning(`${seen}: every user of this machine can read it`, `chmod 600 ${path}`);
    }
    return (mode & RIGHT_TO_READ_OF_GROUP) === 0
      ? fine(seen)
      : warning(`${seen}: its group can read it`, `chmod 600 ${path}, unless that is meant`);
  } catch (error) {
    return failure(`${variable}: ${messageOf(error)}`, 'name a file that this user can read');
  }
}

/** Checks that the callers can be parsed, and that callers need a credential. */
export function checkCallers(config: Config): Promise<readonly Observation[]> {
  const { callers, serviceAuthTokens: tokens } = config;
  if (callers === undefined) {
    const open = warning(
      'no credential is asked for: everybody who reaches the port may do everything',
      'set GATEWAY_SERVICE_AUTH_TOKENS_FILE or GATEWAY_CALLERS_FILE, unless this machine is yours alone',
    );
    return Promise.resolve([tokens.length === 0 ? open : fine(`${tokens.length} service tokens`)]);
  }
  try {
    const { callers: all, issuers } = parseCallersFile(callers);
    const seen = `${all.length} callers, ${issuers.length} issuers, ${tokens.length} service tokens`;
    return Promise.resolve([fine(seen)]);
  } catch (error) {
    const advice = 'gatehouse callers check FILE says the same of a file';
    return Promise.resolve([failure(`GATEWAY_CALLERS: ${messageOf(error)}`, advice)]);
  }
}
