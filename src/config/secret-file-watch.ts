import { AppError } from '../shared/app-error.ts';
import type { OptionTable, OptionValues } from './option.ts';
import { fileVariableOf, readSecretFileAsync } from './secret-file.ts';

/** Two polls make a change effective, so that one takes little more than half a second. */
const INTERVAL_MS = 200;
/** A read that takes longer counts as failed until it ends. */
const ANSWER_MS_MAX = 2_000;

/** One secret setting in a file, and the callback for its changes. */
export type WatchedSecret = {
  readonly path: string;
  /** Parser of the option: throws CONFIG_INVALID, whose text holds nothing of the secret. */
  readonly parse: (text: string) => readonly string[];
  /** Secrets in force. */
  readonly values: readonly string[];
  /** Never called with an empty list, nor with what is in force already. */
  readonly onChanged: (values: readonly string[]) => void;
  /** Why the file cannot be used, once for each reason; null: it can again. What was in force stays. */
  readonly onProblem: (problem: string | null) => void;
};

/** Names in `Table` of secret options that are lists. */
type SecretListName<Table extends OptionTable> = {
  [K in keyof Table]: OptionValues<Table>[K] extends readonly string[] ? K : never;
}[keyof Table];

/** The file that holds a secret option; undefined when none does. */
export function secretPathOf<Table extends OptionTable>(
  table: Table,
  name: keyof Table,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const option = table[name];
  const path = option === undefined ? '' : (env[fileVariableOf(option.env)] ?? '');
  return path === '' ? undefined : path;
}

/** The path and the parser of a secret list in a file; undefined when it is in none. */
export function secretFileOf<Table extends OptionTable>(
  table: Table,
  name: SecretListName<Table>,
  env: Readonly<Record<string, string | undefined>>,
): Pick<WatchedSecret, 'path' | 'parse'> | undefined {
  const option = table[name];
  const path = secretPathOf(table, name, env);
  if (option === undefined || path === undefined) return undefined;
  // The name is one of an option whose value is a list of texts.
  return { path, parse: (text) => option.parse(text) as readonly string[] };
}

/**
 * Reads files of secrets again and again, by their path: mounted secrets are exchanged by a link,
 * which no watcher of a file sees. A change is in force within a second. It counts once two reads
 * in a row found the same text: a file that is just being written may hold the beginning of a
 * token, which is easier to guess than all of it. Cost: five small reads a second for each file,
 * off this thread.
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

  /** Resolves when no read is under way; no callback is called from now on. */
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
  /** Text of the last read, where it differs from the one in force. */
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
    // The next text is read twice, however often it was there before.
    this.#candidate = undefined;
    this.#report(error.message);
  }

  #report(problem: string | null): void {
    if (problem === this.#problem || this.#isStopped) return;
    this.#problem = problem;
    this.#secret.onProblem(problem);
  }
}
