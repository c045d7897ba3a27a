import { AppError } from '../../shared/app-error.ts';
import type { AnnotationLevel } from '../model/run.ts';

/** What one match says, before it is an annotation; texts as they were matched. */
export type ProblemMatch = {
  readonly file?: string | undefined;
  readonly line?: string | undefined;
  readonly column?: string | undefined;
  readonly severity?: string | undefined;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly fromPath?: string | undefined;
};

const FIELDS = ['file', 'line', 'column', 'severity', 'code', 'message', 'fromPath'] as const;
type MatcherField = (typeof FIELDS)[number];

export type ProblemPattern = {
  readonly expression: RegExp;
  /** Field to number of its group. */
  readonly groups: ReadonlyMap<MatcherField, number>;
  readonly isLoop: boolean;
};

export type ProblemMatcherDefinition = {
  readonly owner: string;
  /** Used when the match has none. */
  readonly severity: string;
  readonly fromPath: string;
  readonly patterns: readonly ProblemPattern[];
};

const MATCHERS_MAX = 100;
const PATTERNS_MAX = 20;
const EXPRESSION_LENGTH_MAX = 8_192;

/**
 * Reads a file of problem matchers (github.com/actions/toolkit, docs/problem-matchers.md).
 * Errors: INVALID_VALUE with what is wrong.
 */
export function parseProblemMatchers(text: string): ProblemMatcherDefinition[] {
  const document = parseJson(text);
  const list = isRecord(document) ? (document['problemMatcher'] ?? []) : undefined;
  if (!Array.isArray(list)) {
    throw problem('no list "problemMatcher"');
  }
  if (list.length > MATCHERS_MAX) {
    throw problem(`more than ${MATCHERS_MAX} matchers`);
  }
  const owners = new Set<string>();
  return list.map((item) => {
    const matcher = readMatcher(item);
    if (owners.has(matcher.owner.toLowerCase())) {
      throw problem(`the owner "${matcher.owner}" appears twice`);
    }
    owners.add(matcher.owner.toLowerCase());
    return matcher;
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text);
  } catch (error) {
    throw problem('not JSON', error);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function problem(text: string, cause?: unknown): AppError {
  return new AppError('INVALID_VALUE', `Problem matcher: ${text}`, {}, cause);
}

function readMatcher(item: unknown): ProblemMatcherDefinition {
  if (!isRecord(item)) {
    throw problem('a matcher is not an object');
  }
  const owner = readText(item['owner'], 'owner');
  if (owner === '') {
    throw problem('the owner is missing');
  }
  const severity = readText(item['severity'], 'severity');
  if (severity !== '' && levelOf(severity) === undefined) {
    throw problem(`the severity of "${owner}" is none of error, warning and notice`);
  }
  const list = item['pattern'] ?? [];
  if (!Array.isArray(list) || list.length === 0 || list.length > PATTERNS_MAX) {
    throw problem(`"${owner}" needs 1 to ${PATTERNS_MAX} patterns`);
  }
  const seen = new Set<MatcherField>();
  const patterns = list.map((pattern, index) =>
    readPattern(pattern, { isFirst: index === 0, isLast: index === list.length - 1, seen }),
  );
  if (!seen.has('message')) {
    throw problem(`no pattern of "${owner}" sets the message`);
  }
  return { owner, severity, fromPath: readText(item['fromPath'], 'fromPath'), patterns };
}

function readText(value: unknown, name: string): string {
  if (value === undefined || value === null) {
    return '';
  }
  if (typeof value !== 'string') {
    throw problem(`"${name}" is not text`);
  }
  return value;
}

function readPattern(
  item: unknown,
  place: { readonly isFirst: boolean; readonly isLast: boolean; readonly seen: Set<MatcherField> },
): ProblemPattern {
  if (!isRecord(item)) {
    throw problem('a pattern is not an object');
  }
  const isLoop = item['loop'] === true;
  if (isLoop && (place.isFirst || !place.isLast)) {
    throw problem('only the last of several patterns may loop');
  }
  const expression = compile(readText(item['regexp'], 'regexp'));
  const groupCount = (new RegExp(`${expression.source}|`).exec('')?.length ?? 1) - 1;
  const groups = new Map<MatcherField, number>();
  for (const field of FIELDS) {
    const group = item[field];
    if (group === undefined || group === null) {
      continue;
    }
    if (place.seen.has(field)) {
      throw problem(`"${field}" is set twice`);
    }
    if (typeof group !== 'number' || !Number.isInteger(group) || group < 0 || group > groupCount) {
      throw problem(`"${field}" names a group that the expression does not have`);
    }
    place.seen.add(field);
    groups.set(field, group);
  }
  if (isLoop && !groups.has('message')) {
    throw problem('a pattern that loops has to set the message');
  }
  return { expression, groups, isLoop };
}

function compile(source: string): RegExp {
  if (source.length > EXPRESSION_LENGTH_MAX) {
    throw problem(`an expression has more than ${EXPRESSION_LENGTH_MAX} characters`);
  }
  try {
    return new RegExp(source);
  } catch (error) {
    throw problem('an expression cannot be read', error);
  }
}

/** Undefined for a severity that is not known. Letter case does not count. */
export function levelOf(severity: string): AnnotationLevel | undefined {
  const level = severity.toLowerCase();
  return level === 'error' || level === 'warning' || level === 'notice' ? level : undefined;
}

/** Follows one matcher through the lines of a step. */
export interface ProblemMatcher {
  readonly owner: string;
  /** The match that `line` completes. Its time is that of the regular expressions. */
  match(line: string): ProblemMatch | undefined;
  /** Forgets a match of several lines that was begun. */
  reset(): void;
}

export function createProblemMatcher(definition: ProblemMatcherDefinition): ProblemMatcher {
  const { patterns, owner } = definition;
  const lastIndex = patterns.length - 1;
  /** What the patterns up to an index matched, line after line. */
  let begun: (ProblemMatch | undefined)[] = [];

  function step(index: number, pattern: ProblemPattern, line: string): ProblemMatch | undefined {
    const before = index === 0 ? {} : begun[index - 1];
    if (before === undefined) {
      return undefined;
    }
    const groups = pattern.expression.exec(line);
    if (index < lastIndex) {
      begun[index] = groups === null ? undefined : extend(before, pattern, groups);
      return undefined;
    }
    if (groups === null) {
      // Breaks a loop.
      begun.length = Math.max(0, index - 1);
      return undefined;
    }
    begun = [];
    if (pattern.isLoop) {
      begun[index - 1] = before;
    }
    const whole = extend(before, pattern, groups);
    return {
      ...whole,
      severity:
        whole.severity === undefined || whole.severity === ''
          ? definition.severity
          : whole.severity,
      fromPath:
        whole.fromPath === undefined || whole.fromPath === ''
          ? definition.fromPath
          : whole.fromPath,
    };
  }
  return {
    owner,
    match(line) {
      // Backwards: what a pattern matched in this line must not count as the line before the next one.
      for (let index = lastIndex; index >= 0; index -= 1) {
        const pattern = patterns[index];
        const match = pattern === undefined ? undefined : step(index, pattern, line);
        if (match !== undefined) {
          return match;
        }
      }
      return undefined;
    },
    reset() {
      begun = [];
    },
  };
}

function extend(
  before: ProblemMatch,
  pattern: ProblemPattern,
  groups: RegExpExecArray,
): ProblemMatch {
  const match: Partial<Record<MatcherField, string>> = {};
  for (const field of FIELDS) {
    const group = pattern.groups.get(field);
    const value = before[field] ?? (group === undefined ? undefined : (groups[group] ?? ''));
    if (value !== undefined) {
      match[field] = value;
    }
  }
  return match;
}
