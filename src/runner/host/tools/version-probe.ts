import { statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { type ClientEnvironment, runClient } from './run-client.ts';
import { semver } from './semver.ts';

const TIMEOUT_MS = 20_000;

/** Asks programs for their version, each that works once as long as its file is the same. */
export class VersionProbe {
  readonly #env: ClientEnvironment;
  readonly #known = new Map<string, Promise<string | undefined>>();

  constructor(env: ClientEnvironment) {
    this.#env = env;
  }

  /** `own`: variables beside the usual. What `parse` makes of the output, if that is a semantic version; undefined when it does not work. */
  async ask(
    program: string,
    args: readonly string[],
    parse: (output: string) => string | undefined,
    own: ClientEnvironment = {},
  ): Promise<string | undefined> {
    const at = statSync(program, { throwIfNoEntry: false });
    if (at === undefined) return undefined;
    const key = `${program}\0${at.ino}\0${at.size}\0${at.mtimeMs}`;
    let answer = this.#known.get(key);
    if (answer === undefined) {
      answer = this.#ask(program, args, parse, own);
      this.#known.set(key, answer);
    }
    const version = await answer;
    // Perhaps it took too long, on a machine that was busy.
    if (version === undefined && this.#known.get(key) === answer) this.#known.delete(key);
    return version;
  }

  async #ask(
    program: string,
    args: readonly string[],
    parse: (output: string) => string | undefined,
    own: ClientEnvironment,
  ): Promise<string | undefined> {
    const options = { cwd: tmpdir(), env: { ...this.#env, ...own }, timeoutMs: TIMEOUT_MS };
    const { code, stdout, stderr } = await runClient(program, args, options);
    // Python 2 says it on stderr.
    const version = code === 0 ? parse(`${stdout}\n${stderr}`) : undefined;
    return version !== undefined && semver().valid(version) !== null ? version : undefined;
  }
}
