/** One of the things that `npm run model` does. */
export type Subcommand = {
  /** What `--help` shows: usage, options, exit codes. */
  readonly help: string;
  /** Does it with the arguments behind its name. Resolves to the exit code. */
  readonly run: (args: readonly string[]) => number | Promise<number>;
};

export const EXIT_OK = 0;
/** Something is wrong with what was looked at. */
export const EXIT_PROBLEM = 1;
/** The command was given wrongly, or a file could not be read or written. */
export const EXIT_USAGE = 2;

/** Thrown for a command that was given wrongly; the message is shown with the exit code 2. */
export class UsageError extends Error {}
