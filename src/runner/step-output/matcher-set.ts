import { createContext, Script } from 'node:vm';
import type { AnnotationLevel } from '../model/run.ts';
import {
  createProblemMatcher,
  levelOf,
  type ProblemMatch,
  type ProblemMatcher,
  type ProblemMatcherDefinition,
} from './problem-matchers.ts';

/** Longer lines are not looked at. */
const LINE_LENGTH_MAX = 8_192;
/** Lines that share one watchdog, and the time they have. */
const SLICE_LINES = 256;
const SLICE_MS_MAX = 100;
/** A line on which a matcher ran out of time so often costs it its place. */
const ATTEMPTS_MAX = 3;

export type FoundProblem = {
  /** Of the line. */
  readonly index: number;
  readonly level: AnnotationLevel;
  readonly match: ProblemMatch;
};

/** The problem matchers of a job, which its steps add and remove. */
export interface MatcherSet {
  /** One of the same owner (in any letter case) is replaced; new ones are asked first. */
  add(definitions: readonly ProblemMatcherDefinition[]): void;
  remove(owners: readonly string[]): void;
  isEmpty(): boolean;
  /** For one step: matches over several lines do not go from one step into another. */
  follow(): MatcherRun;
}

export interface MatcherRun {
  /**
   * At most one problem a line: the first match that has a message and a known severity. Lines of more
   * than 8,192 characters have none.
   *
   * @returns problems in the order of the lines, and the owners of matchers that took too long and are
   * no more. Blocks for 100 ms for 256 lines at most, and 300 ms for each matcher it removes.
   */
  match(lines: readonly string[]): {
    readonly found: readonly FoundProblem[];
    readonly removed: readonly string[];
  };
}

export function createMatcherSet(): MatcherSet {
  let definitions: readonly ProblemMatcherDefinition[] = [];

  function without(owners: readonly string[]): readonly ProblemMatcherDefinition[] {
    const names = new Set(owners.map((owner) => owner.toLowerCase()));
    return definitions.filter((definition) => !names.has(definition.owner.toLowerCase()));
  }
  return {
    add(added) {
      for (const definition of added) {
        definitions = [definition, ...without([definition.owner])];
      }
    },
    remove(owners) {
      definitions = without(owners);
    },
    isEmpty: () => definitions.length === 0,
    follow() {
      const running = new Map<ProblemMatcherDefinition, ProblemMatcher>();
      function matchers(): ProblemMatcher[] {
        return definitions.map((definition) => {
          const matcher = running.get(definition) ?? createProblemMatcher(definition);
          running.set(definition, matcher);
          return matcher;
        });
      }
      return {
        match(lines) {
          const scan: MatcherScan = { lines, matchers: matchers(), line: 0, matcher: 0, found: [] };
          const removed: string[] = [];
          scanAll(scan, (owner) => {
            definitions = without([owner]);
            scan.matchers = matchers();
            removed.push(owner);
          });
          return { found: scan.found, removed };
        },
      };
    },
  };
}

/** Where a scan is: a watchdog can stop it anywhere, and it goes on from there. */
type MatcherScan = {
  readonly lines: readonly string[];
  matchers: readonly ProblemMatcher[];
  line: number;
  /** Index of the matcher that looks at the line. */
  matcher: number;
  readonly found: FoundProblem[];
};

function scanAll(scan: MatcherScan, remove: (owner: string) => void): void {
  let attempts = 0;
  while (scan.line < scan.lines.length && scan.matchers.length > 0) {
    const end = Math.min(scan.lines.length, scan.line + SLICE_LINES);
    const lineBefore = scan.line;
    if (within(SLICE_MS_MAX, () => scanLines(scan, end))) {
      attempts = 0;
      continue;
    }
    // A machine that stood still is not the expression's fault: try again.
    attempts = scan.line === lineBefore ? attempts + 1 : 1;
    const slow = scan.matchers[scan.matcher];
    if (attempts >= ATTEMPTS_MAX && slow !== undefined) {
      remove(slow.owner);
      attempts = 0;
    }
  }
}

function scanLines(scan: MatcherScan, end: number): void {
  while (scan.line < end) {
    const line = scan.lines[scan.line] ?? '';
    while (scan.matcher < scan.matchers.length && line.length <= LINE_LENGTH_MAX) {
      const matcher = scan.matchers[scan.matcher];
      const match = matcher?.match(line);
      if (match !== undefined) {
        for (const other of scan.matchers) {
          if (other !== matcher) {
            other.reset();
          }
        }
        const level = levelOf(match.severity === '' ? 'error' : (match.severity ?? 'error'));
        if (level !== undefined && (match.message ?? '').trim() !== '') {
          scan.found.push({ index: scan.line, level, match });
          break;
        }
      }
      scan.matcher += 1;
    }
    scan.matcher = 0;
    scan.line += 1;
  }
}

// Expressions come with actions and can take for ever. Only a watchdog of the engine can end one.
const watched = createContext({ task: undefined as (() => void) | undefined });
const runTask = new Script('task()');

function within(ms: number, task: () => void): boolean {
  watched['task'] = task;
  try {
    runTask.runInContext(watched, { timeout: ms });
    return true;
  } catch (error) {
    if (isTimeout(error)) {
      return false;
    }
    throw error;
  } finally {
    watched['task'] = undefined;
  }
}

/** The error is one of the other context, and no instance of Error here. */
function isTimeout(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
  );
}
