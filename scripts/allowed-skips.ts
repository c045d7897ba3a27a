import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Some tests that may be skipped, as test/allowed-skips.json lists them. */
export type AllowedSkip = {
  /** A regular expression over `file > suite > test`. */
  readonly test: string;
  /** For people: why they are skipped, and what makes them run. */
  readonly reason: string;
  /** With all of it they must run: this user, this platform, this program on the PATH, this variable set. */
  readonly needs?: {
    readonly uid?: number;
    readonly platform?: string;
    readonly program?: string;
    readonly variable?: string;
  };
};

/** What a machine has, as far as `needs` asks. */
export type Machine = {
  readonly platform: string;
  /** Undefined where users have no numbers. */
  readonly uid: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** The committed list. Errors: those of reading it. */
export function readAllowedSkips(): readonly AllowedSkip[] {
  const text = readFileSync(new URL('../test/allowed-skips.json', import.meta.url), 'utf8');
  return JSON.parse(text) as readonly AllowedSkip[];
}

/**
 * Why a test, named `file > suite > test`, may be skipped on `machine`; undefined when it may not: it is not
 * on the list, or what it needs is there. O(entries).
 */
export function reasonOfSkip(
  name: string,
  allowed: readonly AllowedSkip[],
  machine: Machine,
): string | undefined {
  return allowed.find(({ test, needs }) => new RegExp(test).test(name) && !isMet(needs, machine))
    ?.reason;
}

function isMet(needs: AllowedSkip['needs'], { platform, uid, env }: Machine): boolean {
  if (needs === undefined) return false;
  if (needs.uid !== undefined && needs.uid !== uid) return false;
  if (needs.platform !== undefined && needs.platform !== platform) return false;
  if (needs.variable !== undefined && env[needs.variable] === undefined) return false;
  return needs.program === undefined || findProgram(needs.program, env) !== undefined;
}

/** Where the PATH of `env` has a program; undefined where it has none. */
export function findProgram(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const paths = (env['PATH'] ?? '').split(delimiter).map((directory) => join(directory, program));
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false; // Not in this one.
    }
  });
}
