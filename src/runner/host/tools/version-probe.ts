import { statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { type ClientEnvironment, failureOf, runClient } from './run-client.ts';
import { semver } from './tool-version.ts';

const TIMEOUT_MS = 20_000;
const OUTPUT_CHARACTERS_MAX = 100;

/** The version that a program says it is, as semver; else why there is none. */
export type ProbeAnswer =
  | { readonly version: string }
  | { readonly version: undefined; readonly problem: string };

/** Asks programs for their version, each that works once as long as its file is the same. */
export class VersionProbe {
  readonly #env: ClientEnvironment;
  readonly #known = new Map<string, Promise<ProbeAnswer>>();

  constructor(env: ClientEnvironment) {
    this.#env = env;
  }

  /**
   * What `parse` makes of the output, if that is a semantic version; else how the program ended, with the first
   * lines of what it complained of. `own`: variables beside the usual.
   */
  async ask(
    program: string,
    args: readonly string[],
    parse: (output: string) => string | undefined,
    own: ClientEnvironment = {},
  ): Promise<ProbeAnswer> {
    const at = statSync(program, { throwIfNoEntry: false });
    if (at === undefined) return { version: undefined, problem: 'there is no such file' };
    const key = `${program}\0${at.ino}\0${at.size}\0${at.mtimeMs}`;
    let answer = this.#known.get(key);
    if (answer === undefined) {
      answer = this.#ask(program, args, parse, own);
      this.#known.set(key, answer);
    }
    const said = await answer;
    // Perhaps it took too long, on a machine that was busy.
    if (said.version === undefined && this.#known.get(key) === answer) this.#known.delete(key);
    return said;
  }

  async #ask(
    program: string,
    args: readonly string[],
    parse: (output: string) => string | undefined,
    own: ClientEnvironment,
  ): Promise<ProbeAnswer> {
    const options = { cwd: tmpdir(), env: { ...this.#env, ...own }, timeoutMs: TIMEOUT_MS };
    const result = await runClient(program, args, options);
    if (result.code !== 0) return { version: undefined, problem: failureOf(result, 'first') };
    // Python 2 says it on stderr.
    const output = `${result.stdout}\n${result.stderr}`.trim();
    const version = parse(output);
    if (version !== undefined && semver().valid(version) !== null) return { version };
    const shown = output.split('\n', 1)[0]?.slice(0, OUTPUT_CHARACTERS_MAX) ?? '';
    const problem =
      shown === '' ? 'it says nothing' : `it says '${shown}', which is no such version`;
    return { version: undefined, problem };
  }
}
