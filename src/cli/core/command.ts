import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CliCommand } from '../../command-line/command-help.ts';
import type { Screens } from '../../command-line/terminal.ts';

/** What a command does with its line; resolves to the exit code. Errors: AppError, which the caller shows and turns into one. */
export type RunCommand = (line: CliLine) => Promise<number>;

/** A row of a table of commands. What it does is loaded when it is asked for: help and completion need only the row. */
export type CliCommandRow = CliCommand & {
  readonly load: () => Promise<RunCommand>;
};

/** Names of commands, of one word or two (`check`, `model test`), in the order in which help lists them. */
export type CommandTable = Readonly<Record<string, CliCommandRow>>;

/** What was typed behind the name of the program, and where the command reads and writes. */
export type CliLine = {
  /** `check`, `model test`. */
  readonly name: string;
  /** Behind the name. */
  readonly words: readonly string[];
  /** What was given for an option; the last one counts. */
  readonly text: (option: string) => string | undefined;
  /** All that was given for it. */
  readonly texts: (option: string) => readonly string[];
  readonly isSet: (option: string) => boolean;
  /** Every command there is, for what lists them. */
  readonly commands: ReadonlyMap<string, CliCommandRow>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Results, and words beside them. */
  readonly screens: Screens;
};

/** Those of folders beside src/, which a package does not have. */
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
