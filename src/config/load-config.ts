import { availableParallelism, totalmem } from 'node:os';
import { AppError } from '../shared/app-error.ts';
import { nearestName } from './nearest-name.ts';
import type { Machine, Option } from './option.ts';
import { OPTIONS, type Config } from './options.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const ENTRIES: readonly (readonly [string, Option<unknown>])[] = Object.entries(OPTIONS);
const PREFIX = 'GATEWAY_';

/** What this machine, or the container around the process, offers. */
export function thisMachine(): Machine {
  // 0 or a number beyond the machine's memory means that there is no limit.
  const limit = process.constrainedMemory();
  const total = totalmem();
  return {
    cpuCount: availableParallelism(),
    memoryBytes: limit > 0 && limit < total ? limit : total,
  };
}

/**
 * The configuration that `env` describes; an empty variable counts as unset, surrounding white space
 * does not matter.
 * Errors: one CONFIG_INVALID that carries every problem, one line each. Values of secret options are
 * in no message.
 */
export function loadConfig(env: Environment, machine: Machine = thisMachine()): Config {
  const problems = unknownNames(env);
  const resolved: Record<string, unknown> = {};
  for (const [name, option] of ENTRIES) {
    const text = env[option.env] ?? '';
    try {
      // Only empty is unset: a token list of blanks must fail, not switch authentication off.
      resolved[name] = text === '' ? option.fallback(machine, resolved) : option.parse(text.trim());
    } catch (error) {
      if (!(error instanceof AppError) || error.reason !== 'CONFIG_INVALID') throw error;
      problems.push(`${option.env}: ${error.message}`);
    }
  }
  if (problems.length === 0) {
    // Each entry was resolved by the option of its name, so that the mapped type holds.
    const config = resolved as Config;
    problems.push(...contradictions(config));
    if (problems.length === 0) return Object.freeze(config);
  }
  throw new AppError('CONFIG_INVALID', problems.join('\n'));
}

/** The configuration for people: by environment variable, secrets replaced. */
export function redactedConfig(config: Config): Record<string, unknown> {
  const values: Readonly<Record<string, unknown>> = config;
  return Object.fromEntries(
    ENTRIES.map(([name, option]) => [option.env, redact(option, values[name])]),
  );
}

function redact(option: Option<unknown>, value: unknown): unknown {
  if (!option.secret) return value;
  const isUnset = value === undefined || (Array.isArray(value) && value.length === 0);
  return isUnset ? 'unset' : 'redacted';
}

function unknownNames(env: Environment): string[] {
  const known = ENTRIES.map(([, option]) => option.env);
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name))
    .toSorted()
    .map((name) => {
      const nearest = nearestName(name, known);
      return `${name}: no such setting${nearest === undefined ? '' : `; did you mean ${nearest}?`}`;
    });
}

/** Relations between settings that would otherwise show only under load. */
function contradictions(config: Config): string[] {
  const problems: string[] = [];
  if (config.connectPort !== 0 && config.connectPort === config.metricsPort) {
    problems.push(`${OPTIONS.metricsPort.env}: must differ from ${OPTIONS.connectPort.env}`);
  }
  if (config.shardQueueMax > config.workerQueueMax) {
    problems.push(
      `${OPTIONS.shardQueueMax.env}: must not exceed ${OPTIONS.workerQueueMax.env} (${config.workerQueueMax})`,
    );
  }
  return problems;
}
