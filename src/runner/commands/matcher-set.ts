import { createContext, Script } from 'node:vm';
import {
  createProblemMatcher,
  type ProblemMatch,
  type ProblemMatcher,
  type ProblemMatcherDefinition,
} from './problem-matchers.ts';

/** Longer lines are not looked at. */
const LINE_LENGTH_MAX = 8_192;
/** One line with all matchers may take so long before the one at work is removed. */
const MATCH_MS_MAX = 100;
/** Lines that share one watchdog. */
const SLICE_LINES = 256;

/** The problem matchers of a job, which its steps add and remove. */
export interface MatcherSet {
  /** One of the same owner (in any letter case) is replaced; new ones are asked first. */
  add(definitions: readonly ProblemMatcherDefinition[]): void;
  remove(owners: readonly string[]): void;
  isEmpty(): boolean;
  /**
   * The first match of each line. An expression that takes too long loses its matcher.
   *
   * @param onLine gets the index and the match of each line that matched, in order.
   * @returns owners of matchers that were removed.
   */
  match(
    lines: readonly string[],
    onLine: (index: number, match: ProblemMatch) => boolean,
  ): readonly string[];
}

// Expressions come from actions and can take for ever; only a watchdog of the engine ends one.
const watched = createContext({ task: undefined as (() => void) | undefined });
const runTask = new Script('task()');

export function createMatcherSet(): MatcherSet {
  let matchers: readonly ProblemMatcher[] = [];

  function without(owners: ReadonlySet<string>): readonly ProblemMatcher[] {
    return matchers.filter((matcher) => !owners.has(matcher.owner.toLowerCase()));
  }
  return {
    add(definitions) {
      for (const definition of definitions) {
        const kept = without(new Set([definition.owner.toLowerCase()]));
        matchers = [createProblemMatcher(definition), ...kept];
      }
    },
    remove(owners) {
      matchers = without(new Set(owners.map((owner) => owner.toLowerCase())));
    },
    isEmpty: () => matchers.length === 0,
    match(lines, onLine) {
      const removed: string[] = [];
      let next = 0;
      while (next < lines.length && matchers.length > 0) {
        const end = Math.min(lines.length, next + SLICE_LINES);
        let current: ProblemMatcher | undefined;
        const isDone = within(MATCH_MS_MAX, () => {
          for (; next < end; next += 1) {
            const line = lines[next] ?? '';
            if (line.length > LINE_LENGTH_MAX) {
              continue;
            }
            for (const matcher of matchers) {
              current = matcher;
              const match = matcher.match(line);
              if (match === undefined) {
                continue;
              }
              for (const other of matchers) {
                if (other !== matcher) {
                  other.reset();
                }
              }
              if (onLine(next, match)) {
                break;
              }
            }
          }
        });
        if (!isDone && current !== undefined) {
          const slow = current;
          matchers = matchers.filter((matcher) => matcher !== slow);
          removed.push(slow.owner);
          // The line that took too long is an ordinary one.
          next += 1;
        }
      }
      return removed;
    },
  };
}

function within(ms: number, task: () => void): boolean {
  watched['task'] = task;
  try {
    runTask.runInContext(watched, { timeout: ms });
    return true;
  } catch (error) {
    if (
      error instanceof Error &&
      'code' in error &&
      error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    ) {
      return false;
    }
    throw error;
  } finally {
    watched['task'] = undefined;
  }
}
