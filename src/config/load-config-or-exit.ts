import { loadConfig } from './load-config.ts';
import type { Config } from './options.ts';
import { validOrExit } from './valid-or-exit.ts';

/** `loadConfig(process.env)` for a main: all problems on stderr, no stack, exit code 2. */
export function loadConfigOrExit(): Config {
  return validOrExit(() => loadConfig(process.env));
}
