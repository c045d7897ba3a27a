import { AppError } from '../shared/app-error.ts';

/** Exit code of a process whose settings are wrong: restarting it cannot help. */
const EXIT_CONFIG = 2;

/** What `load` returns, for a main: all problems of a CONFIG_INVALID on stderr, no stack, exit code 2. */
export function validOrExit<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (!(error instanceof AppError) || error.reason !== 'CONFIG_INVALID') throw error;
    const lines = error.message.split('\n').map((line) => `  ${line}\n`);
    process.stderr.write(`The configuration is not valid:\n${lines.join('')}`);
    process.exit(EXIT_CONFIG);
  }
}
