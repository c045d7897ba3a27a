import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CliCommand } from '../../command-line/command-help.ts';
import type { Screens } from '../../command-line/terminal.ts';

/**
 * Runs a command with its line; resolves to the exit code. Errors: AppError, which the caller shows
 * and maps to an exit code.
 */
export type RunCommand = (line: CliLine) => Promise<number>;

/**
 * A row of a table of commands. The implementation is loaded on demand: help and completion need
 * only the row.
 */
export type CliCommandRow = CliCommand & {
  readonly load: () => Promise<RunCommand>;
};

/** Commands by name, of one word or two (`check`, `model test`), in the order of the help. */
export type CommandTable = Readonly<Record<string, CliCommandRow>>;

/**
 * The command line behind the name of the program, and the streams and environment of the command.
 */
export type CliLine = {
  /** `check`, `model test`. */
  readonly name: string;
  /** Words behind the name. */
  readonly words: readonly string[];
  /** The value of an option; the last one counts. */
  readonly text: (option: string) => string | undefined;
  /** All values of an option. */
  readonly texts: (option: string) => readonly string[];
  readonly isSet: (option: string) => boolean;
  /** Every command, for commands that list them. */
  readonly commands: ReadonlyMap<string, CliCommandRow>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Streams for results and for notes. */
  readonly screens: Screens;
};

/** Programs in folders next to src/, which a package does not have. */
const OF_CHECKOUT = {
  load: 'drives load at a service',
  verify: 'disturbs instances, and checks whether every answer was fresh',
};
const isCheckout = existsSync(fileURLToPath(new URL('../../../load', import.meta.url)));

/** Programs that read their own arguments: `gatehouse NAME …` passes them the rest of the line. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  serve: 'starts the authorization service; --instances N, --testing',
  runner: 'runs workflows; what gatehouse-runner is',
  ...(isCheckout ? OF_CHECKOUT : {}),
};
