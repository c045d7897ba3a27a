import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CliCommand } from '../../command-line/command-help.ts';
import type { Screens } from '../../command-line/terminal.ts';

/** Runs a command line; resolves to the exit code. Errors: AppError, which the caller prints and turns into one. */
export type RunCommand = (line: CliLine) => Promise<number>;

/** A row of the table of commands. Its code is loaded on demand: help and completion need only the row. */
export type CliCommandRow = CliCommand & {
  readonly load: () => Promise<RunCommand>;
};

/** Names of commands, of one word or two (`check`, `model test`), in the order in which help lists them. */
export type CommandTable = Readonly<Record<string, CliCommandRow>>;

/** The words typed after the program's name, and the streams and environment of the command. */
export type CliLine = {
  /** `check`, `model test`. */
  readonly name: string;
  /** Behind the name. */
  readonly words: readonly string[];
  /** Value of an option; the last one counts. */
  readonly text: (option: string) => string | undefined;
  /** All values of an option. */
  readonly texts: (option: string) => readonly string[];
  readonly isSet: (option: string) => boolean;
  /** Every command there is, for what lists them. */
  readonly commands: ReadonlyMap<string, CliCommandRow>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Results, and words beside them. */
  readonly screens: Screens;
};

/** Commands of folders outside src/, which a package does not have. */
const OF_CHECKOUT = {
  load: 'drives load at a service',
  verify: 'disturbs instances, and checks whether every answer was fresh',
};
const isCheckout = existsSync(fileURLToPath(new URL('../../../load', import.meta.url)));

/** Programs that read their own arguments: `gatehouse NAME …` is theirs to the end of the line. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  serve: 'starts the authorization service; --instances N, --testing',
  runner: 'runs workflows; what gatehouse-runner is',
  ...(isCheckout ? OF_CHECKOUT : {}),
};
