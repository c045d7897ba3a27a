import { AppError } from '../shared/app-error.ts';
import type { OptionTable, OptionValues } from './option.ts';
import { fileVariableOf, readSecretFileAsync } from './secret-file.ts';

/**
 * Interval of polls, in ms. Two polls make a change effective, so that it takes little more than
 * half a second.
 */
const INTERVAL_MS = 200;
/** Time in ms after which an unfinished read counts as failed, until it ends. */
const ANSWER_MS_MAX = 2_000;

/** One secret setting in a file, and the callback for its changes. */
export type WatchedSecret = {
  readonly path: string;
  /** Parser of the option. Throws CONFIG_INVALID, whose text contains nothing of the secret. */
  readonly parse: (text: string) => readonly string[];
  /** Secrets in force. */
  readonly values: readonly string[];
  /**
   * Called with new secrets; never with an empty list, nor with the secrets that are already in
   * force.
   */
  readonly onChanged: (values: readonly string[]) => void;
  /**
   * Called once for each reason why the file cannot be used, and with null when it is usable again.
   * The secrets in force stay.
   */
  readonly onProblem: (problem: string | null) => void;
};

/** Names in `Table` of secret options that are lists. */
type SecretListName<Table extends OptionTable> = {
  [K in keyof Table]: OptionValues<Table>[K] extends readonly string[] ? K : never;
}[keyof Table];

/** The file that holds a secret option; undefined if there is none. */
export function secretPathOf<Table extends OptionTable>(
  table: Table,
  name: keyof Table,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const option = table[name];
  const path = option === undefined ? '' : (env[fileVariableOf(option.env)] ?? '');
  return path === '' ? undefined : path;
}

/** The path and the parser of a secret list in a file; undefined if the list is not in a file. */
export function secretFileOf<Table extends OptionTable>(
  table: Table,
  name: SecretListName<Table>,
  env: Readonly<Record<string, string | undefined>>,
): Pick<WatchedSecret, 'path' | 'parse'> | undefined {
  const option = table[name];
  const path = secretPathOf(table, name, env);
  if (option === undefined || path === undefined) return undefined;
  // The name belongs to an option whose value is a list of texts.
  return { path, parse: (text) => option.parse(text) as readonly string[] };
}

/**
 * Polls files of secrets by their path: mounted secrets are replaced by a link, which no watcher of
 * a file sees.
 *
 * A change is in force within a second, once two reads in a row found the same text. A file that is
 * being written may hold the beginning of a token, which is easier to guess than the whole. Cost:
 * five small reads a second for each file, off this thread.
 */
export class SecretFileWatch {
  readonly #files: readonly WatchedFile[];
  #timer: NodeJS.Timeout | undefined;

  constructor(secrets: readonly WatchedSecret[]) {
    this.#files = secrets.map((secret) => new WatchedFile(secret));
  }

  start(): void {
    if (this.#files.length === 0) return;
    this.#timer ??= setInterval(() => {
      for (const file of this.#files) file.refresh();
    }, INTERVAL_MS).unref();
  }

  /** Resolves when no read is in progress; no callback is called from now on. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#files.map((file) => file.stop()));
  }
}

class WatchedFile {
  readonly #secret: WatchedSecret;
  #values: readonly string[];
  /** Text in force; undefined before the first read that counted. */
  #text: string | undefined;
  /** Text of the last read, if it differs from the one in force. */
  #candidate: string | undefined;
  #problem: string | null = null;
  #reading: Promise<void> | undefined;
  #readingSinceMs = 0;
  #isStopped = false;

  constructor(secret: WatchedSecret) {
    this.#secret = secret;
    this.#values = secret.values;
  }

  refresh(): void {
    if (this.#reading !== undefined) {
      const isLate = performance.now() - this.#readingSinceMs > ANSWER_MS_MAX;
      if (isLate) this.#report(`the file that it names was not read within ${ANSWER_MS_MAX} ms`);
      return;
    }
    this.#readingSinceMs = performance.now();
    this.#reading = readSecretFileAsync(this.#secret.path)
      .then(
        (text) => this.#found(text),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => (this.#reading = undefined));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#reading;
  }

  #found(text: string): void {
    if (text === this.#text) {
      this.#candidate = undefined;
      this.#report(null);
    } else if (text !== this.#candidate) {
      this.#candidate = text;
    } else {
      this.#accept(text);
    }
  }

  #accept(text: string): void {
    let values: readonly string[];
    try {
      values = this.#secret.parse(text);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#report(error.message);
      return;
    }
    this.#text = text;
    this.#candidate = undefined;
    const isSame = new Set(values).symmetricDifference(new Set(this.#values)).size === 0;
    this.#values = values;
    this.#report(null);
    if (!isSame && !this.#isStopped) this.#secret.onChanged(values);
  }

  #failed(error: unknown): void {
    if (!(error instanceof AppError)) throw error;
    // The next text needs two reads, even if it was seen before.
    this.#candidate = undefined;
    this.#report(error.message);
  }

  #report(problem: string | null): void {
    if (problem === this.#problem || this.#isStopped) return;
    this.#problem = problem;
    this.#secret.onProblem(problem);
  }
}
