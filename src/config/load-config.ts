import { BODIES_HELD_MIN } from './common-options.ts';
import { type Environment, loadOptions, validOrExit } from './load-options.ts';
import type { Machine } from './option.ts';
import { type Config, OPTIONS } from './options.ts';

/**
 * The configuration of the authorization service that `env` describes.
 * Errors: those of `loadOptions`.
 */
export function loadConfig(env: Environment, machine?: Machine): Config {
  const rules = { prefix: 'GATEWAY_', removed: REMOVED, contradictions };
  return loadOptions(OPTIONS, rules, env, machine);
}

const REMOVED = {
  GATEWAY_HTTP2: 'HTTP/2 has one framing, which `own` was. Remove the variable',
};

/** Contradictions between settings that would otherwise appear only under load. */
function contradictions(config: Config): string[] {
  const problems: string[] = [];
  if (config.connectPort !== 0 && config.connectPort === config.metricsPort) {
    problems.push(`${OPTIONS.metricsPort.env}: must differ from ${OPTIONS.connectPort.env}`);
  }
  if (config.listenFds.length > 0 !== (config.metricsListenFd !== undefined)) {
    problems.push(`${OPTIONS.listenFds.env}: needs ${OPTIONS.metricsListenFd.env}, and it this`);
  }
  if (config.shardQueueMax > config.workerQueueMax) {
    problems.push(
      `${OPTIONS.shardQueueMax.env}: must not exceed ${OPTIONS.workerQueueMax.env} (${config.workerQueueMax})`,
    );
  }
  const bodyMemoryMin = BODIES_HELD_MIN * config.maxBodyBytes;
  if (config.bodyMemoryBytes < bodyMemoryMin) {
    problems.push(
      `${OPTIONS.bodyMemoryBytes.env}: must be at least ${bodyMemoryMin}, ${BODIES_HELD_MIN} times ${OPTIONS.maxBodyBytes.env}`,
    );
  }
  if (config.recordFile !== undefined && config.recordQuestionsEvery === 0) {
    problems.push(`${OPTIONS.recordFile.env}: needs ${OPTIONS.recordQuestionsEvery.env}`);
  }
  return problems;
}

/**
 * `loadConfig(process.env)` for a main function: prints all problems to stderr without a stack, and
 * exits with code 2.
 */
export function loadConfigOrExit(): Config {
  return validOrExit(() => loadConfig(process.env));
}
