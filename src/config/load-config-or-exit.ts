import { AppError } from '../shared/app-error.ts';
import { loadConfig } from './load-config.ts';
import type { Config } from './options.ts';

/** Exit code of a process whose settings are wrong: restarting it cannot help. */
const EXIT_CONFIG = 2;

/** `loadConfig(process.env)` for a main: all problems on stderr, no stack, exit code 2. */
export function loadConfigOrExit(): Config {
  try {
    return loadConfig(process.env);
  } catch (error) {
    if (!(error instanceof AppError) || error.reason !== 'CONFIG_INVALID') throw error;
    const lines = error.message.split('\n').map((line) => `  ${line}\n`);
    process.stderr.write(`The configuration is not valid:\n${lines.join('')}`);
    process.exit(EXIT_CONFIG);
  }
}
