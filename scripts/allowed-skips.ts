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
  return needs.program === undefined || isOnPath(needs.program, env['PATH'] ?? '');
}

function isOnPath(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false; // Not in this one.
    }
  });
}
