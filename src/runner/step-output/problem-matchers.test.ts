import { describe, expect, test } from 'vitest';
import {
  createProblemMatcher,
  parseProblemMatchers,
  type ProblemMatch,
} from './problem-matchers.ts';

type PatternFile = Record<string, unknown>;
type MatcherFile = { owner: string; severity?: string; fromPath?: string; pattern: PatternFile[] };

function file(...matchers: readonly MatcherFile[]): string {
  return JSON.stringify({ problemMatcher: matchers });
}

const matcher = (...pattern: PatternFile[]): MatcherFile => ({ owner: 'myMatcher', pattern });

/**
 * The cases of the official runner for what a file may say (actions/runner,
 * src/Test/L0/Worker/IssueMatcherL0.cs, Config_Validate_*, MIT): one that is refused, one that is not.
 */
const CONFIG_CASES: readonly {
  readonly name: string;
  readonly refused?: readonly MatcherFile[];
  readonly taken: readonly MatcherFile[];
}[] = [
  {
    name: 'loop not on the only pattern',
    refused: [matcher({ regexp: '^error: (.+)$', message: 1, loop: true })],
    taken: [
      matcher(
        { regexp: '^file: (.+)$', file: 1 },
        { regexp: '^error: (.+)$', message: 1, loop: true },
      ),
    ],
  },
  {
    name: 'loop only on the last pattern',
    refused: [
      matcher(
        { regexp: '^(error)$', severity: 1 },
        { regexp: '^file: (.+)$', file: 1, loop: true },
        { regexp: '^error: (.+)$', message: 1 },
      ),
    ],
    taken: [
      matcher(
        { regexp: '^(error)$', severity: 1 },
        { regexp: '^file: (.+)$', file: 1 },
        { regexp: '^error: (.+)$', message: 1, loop: true },
      ),
    ],
  },
  {
    name: 'a loop sets the message',
    refused: [
      matcher(
        { regexp: '^file: (.+)$', message: 1 },
        { regexp: '^file: (.+)$', file: 1, loop: true },
      ),
    ],
    taken: [matcher({ regexp: '^file: (.+)$', message: 1 }, { regexp: '^file: (.+)$', file: 1 })],
  },
  {
    name: 'the first pattern may set the message',
    taken: [matcher({ regexp: '^file: (.+)$', message: 1 }, { regexp: '^error: (.+)$', file: 1 })],
  },
  {
    name: 'some pattern sets the message',
    refused: [matcher({ regexp: '^error: (.+)$', file: 1 })],
    taken: [matcher({ regexp: '^error: (.+)$', message: 1 })],
  },
  {
    name: 'owners differ in more than letter case',
    refused: [
      matcher({ regexp: '^error: (.+)$', message: 1 }),
      { owner: 'MYmatcher', pattern: [{ regexp: '^ERR: (.+)$', message: 1 }] },
    ],
    taken: [
      { owner: 'asdf', pattern: [{ regexp: '^error: (.+)$', message: 1 }] },
      { owner: 'MYmatcher', pattern: [{ regexp: '^ERR: (.+)$', message: 1 }] },
    ],
  },
  {
    name: 'an owner is there',
    refused: [{ owner: '', pattern: [{ regexp: '^error: (.+)$', message: 1 }] }],
    taken: [{ owner: 'asdf', pattern: [{ regexp: '^error: (.+)$', message: 1 }] }],
  },
  {
    name: 'a pattern is there',
    refused: [matcher()],
    taken: [matcher({ regexp: '^error: (.+)$', message: 1 })],
  },
  {
    name: 'a property is set once',
    refused: [
      matcher(
        { regexp: '^severity: (.+)$', file: 1 },
        { regexp: '^file: (.+)$', file: 1 },
        { regexp: '^(.+)$', message: 1 },
      ),
    ],
    taken: [
      matcher(
        { regexp: '^severity: (.+)$', severity: 1 },
        { regexp: '^file: (.+)$', file: 1 },
        { regexp: '^(.+)$', message: 1 },
      ),
    ],
  },
  {
    name: 'a group exists',
    refused: [matcher({ regexp: '^(.+)$', message: 2 })],
    taken: [matcher({ regexp: '^(.+)$', message: 1 })],
  },
  {
    name: 'a group is not negative',
    refused: [matcher({ regexp: '^(.+)$', message: -1 })],
    taken: [matcher({ regexp: '^(.+)$', message: 1 })],
  },
];

describe('a file of problem matchers', () => {
  test.each(CONFIG_CASES)('$name', ({ refused, taken }) => {
    if (refused !== undefined) {
      expect(() => parseProblemMatchers(file(...refused))).toThrow(
        expect.objectContaining({ reason: 'INVALID_VALUE' }),
      );
    }
    expect(parseProblemMatchers(file(...taken))).toHaveLength(taken.length);
  });

  test.each([
    ['{', 'not JSON'],
    ['[]', 'no list'],
    ['{"problemMatcher":{}}', 'no list'],
    ['{"problemMatcher":[1]}', 'not an object'],
    ['{"problemMatcher":[{"owner":1}]}', '"owner" is not text'],
    [file(matcher({ regexp: '(', message: 0 })), 'cannot be read'],
    [file({ ...matcher({ regexp: 'x', message: 0 }), severity: 'bad' }), 'severity'],
    [file(matcher({ regexp: 'x'.repeat(9_000), message: 0 })), 'more than'],
  ])('%j: %s', (text, problem) => {
    expect(() => parseProblemMatchers(text)).toThrow(problem);
  });

  test('without matchers, with a byte order mark', () => {
    expect(parseProblemMatchers('\uFEFF{}')).toEqual([]);
  });
});

const FILE = { regexp: '^(.+)$', file: 1 };
const CODE = { regexp: '^(.+)$', code: 1 };
const SEVERITY = { regexp: '^(.+)$', severity: 1 };
const MESSAGE = { regexp: '^message:(.+)$', message: 1 };
const PLACE = { regexp: '^file:(.+) fromPath:(.+)$', file: 1, fromPath: 2 };
const GRAVITY = { regexp: '^severity:(.+)$', severity: 1 };
const DETAIL = {
  regexp: '^line:(.+) column:(.+) code:(.+) message:(.+)$',
  line: 1,
  column: 2,
  code: 3,
  message: 4,
};
const ALL = '^file:(.+) line:(.+) column:(.+) severity:(.+) code:(.+) message:(.+)';
const ALL_GROUPS = { file: 1, line: 2, column: 3, severity: 4, code: 5, message: 6 };
const ALL_LINE =
  'file:my-file.cs line:123 column:45 severity:real-bad code:uh-oh message:not-working';
const ALL_MATCH = {
  file: 'my-file.cs',
  line: '123',
  column: '45',
  severity: 'real-bad',
  code: 'uh-oh',
  message: 'not-working',
};
const detail = (line: string, column: string, code: string, message: string): ProblemMatch => ({
  file: 'my-file.cs',
  fromPath: 'my-project.proj',
  severity: 'real-bad',
  line,
  column,
  code,
  message,
});

type Step = readonly [line: string, match: ProblemMatch | undefined | 'any'];

/** Lines through one matcher: IssueMatcherL0.cs, Matcher_*. Only the given fields are compared. */
const MATCH_CASES: readonly {
  readonly name: string;
  readonly matcher: MatcherFile;
  readonly steps: readonly Step[];
}[] = [
  {
    name: 'several patterns, default severity',
    matcher: {
      ...matcher(
        { regexp: '^(ERROR)?(?: )?(.+):$', severity: 1, code: 2 },
        { regexp: '^(.+)$', message: 1 },
      ),
      severity: 'warning',
    },
    steps: [
      ['ABC:', 'any'],
      ['not-working', { severity: 'warning', code: 'ABC', message: 'not-working' }],
      ['ERROR ABC:', 'any'],
      ['not-working', { severity: 'ERROR', code: 'ABC', message: 'not-working' }],
    ],
  },
  {
    name: 'default severity notice',
    matcher: { ...matcher({ regexp: '^(.+)$', message: 1 }), severity: 'notice' },
    steps: [['just-a-notice', { severity: 'notice', message: 'just-a-notice' }]],
  },
  {
    name: 'loop: state line by line',
    matcher: matcher(FILE, CODE, { ...MESSAGE, loop: true }),
    steps: [
      ['file1', undefined],
      ['code1', undefined],
      ['message:message1', { file: 'file1', code: 'code1', message: 'message1' }],
      ['message:message1-2', { file: 'file1', code: 'code1', message: 'message1-2' }],
      ['abc', 'any'],
      ['file2', undefined],
      ['code2', undefined],
      ['message:message2', { file: 'file2', code: 'code2', message: 'message2' }],
      ['abc', 'any'],
      ['abc', 'any'],
      ['file3', undefined],
      ['code3', undefined],
      ['message:message3', { file: 'file3', code: 'code3', message: 'message3' }],
    ],
  },
  {
    name: 'loop: a broken match clears the state',
    matcher: matcher(FILE, SEVERITY, { ...MESSAGE, loop: true }),
    steps: [
      ['my-file.cs', undefined],
      ['real-bad', undefined],
      ['message:not-working', { file: 'my-file.cs', severity: 'real-bad', message: 'not-working' }],
      ['message:problem', { file: 'my-file.cs', severity: 'real-bad', message: 'problem' }],
      ['other-file.cs', undefined],
      ['message:not-good', undefined],
      [
        'message:broken',
        { file: 'other-file.cs', severity: 'message:not-good', message: 'broken' },
      ],
    ],
  },
  {
    name: 'loop: properties',
    matcher: matcher(PLACE, GRAVITY, { ...DETAIL, loop: true }),
    steps: [
      ['file:my-file.cs fromPath:my-project.proj', undefined],
      ['severity:real-bad', undefined],
      [
        'line:123 column:45 code:uh-oh message:not-working',
        detail('123', '45', 'uh-oh', 'not-working'),
      ],
      ['line:234 column:56 code:yikes message:broken', detail('234', '56', 'yikes', 'broken')],
      [
        'line:345 column:67 code:failed message:cant-do-that',
        detail('345', '67', 'failed', 'cant-do-that'),
      ],
    ],
  },
  {
    name: 'no loop: state line by line',
    matcher: matcher(FILE, CODE, MESSAGE),
    steps: [
      ['file1', undefined],
      ['code1', undefined],
      ['message:message1', { file: 'file1', code: 'code1', message: 'message1' }],
      ['abc', 'any'],
      ['file2', undefined],
      ['code2', undefined],
      ['message:message2', { file: 'file2', code: 'code2', message: 'message2' }],
      ['abc', 'any'],
      ['abc', 'any'],
      ['file3', undefined],
      ['code3', undefined],
      ['message:message3', { file: 'file3', code: 'code3', message: 'message3' }],
      ['message:message3', undefined],
    ],
  },
  {
    name: 'no loop: does not loop',
    matcher: matcher({ regexp: '^file:(.+)$', file: 1 }, MESSAGE),
    steps: [
      ['file:my-file.cs', undefined],
      ['message:not-working', { file: 'my-file.cs', message: 'not-working' }],
      ['message:not-working', undefined],
    ],
  },
  {
    name: 'no loop: properties',
    matcher: matcher(PLACE, GRAVITY, DETAIL),
    steps: [
      ['file:my-file.cs fromPath:my-project.proj', undefined],
      ['severity:real-bad', undefined],
      [
        'line:123 column:45 code:uh-oh message:not-working',
        detail('123', '45', 'uh-oh', 'not-working'),
      ],
      ['line:123 column:45 code:uh-oh message:not-working', undefined],
    ],
  },
  {
    name: 'no loop: a match clears the state',
    matcher: matcher(FILE, SEVERITY, { regexp: '^(.+)$', message: 1 }),
    steps: [
      ['my-file.cs', undefined],
      ['real-bad', undefined],
      ['not-working', { file: 'my-file.cs', severity: 'real-bad', message: 'not-working' }],
      ['other-file.cs', undefined],
      ['not-good', undefined],
      ['broken', { file: 'other-file.cs', severity: 'not-good', message: 'broken' }],
    ],
  },
  {
    name: 'one pattern, default severity',
    matcher: {
      ...matcher({ regexp: '^(ERROR)?(?: )?(.+): (.+)$', severity: 1, code: 2, message: 3 }),
      severity: 'warning',
    },
    steps: [
      ['ABC: not-working', { severity: 'warning', code: 'ABC', message: 'not-working' }],
      ['ERROR ABC: not-working', { severity: 'ERROR', code: 'ABC', message: 'not-working' }],
    ],
  },
  {
    name: 'one pattern, all properties',
    matcher: matcher({ regexp: `${ALL} fromPath:(.+)$`, ...ALL_GROUPS, fromPath: 7 }),
    steps: [
      [`${ALL_LINE} fromPath:my-project.proj`, { ...ALL_MATCH, fromPath: 'my-project.proj' }],
    ],
  },
  {
    name: 'one pattern, default project',
    matcher: {
      ...matcher({ regexp: `${ALL}$`, ...ALL_GROUPS }),
      fromPath: 'subdir/default-project.csproj',
    },
    steps: [[ALL_LINE, { ...ALL_MATCH, fromPath: 'subdir/default-project.csproj' }]],
  },
  {
    name: 'one pattern, its project before the default',
    matcher: {
      ...matcher({ regexp: `${ALL} fromPath:(.+)$`, ...ALL_GROUPS, fromPath: 7 }),
      fromPath: 'subdir/default-project.csproj',
    },
    steps: [
      [`${ALL_LINE} fromPath:my-project.proj`, { ...ALL_MATCH, fromPath: 'my-project.proj' }],
    ],
  },
  {
    name: 'several patterns, their project before the default',
    matcher: { ...matcher(PLACE, GRAVITY, DETAIL), fromPath: 'subdir/default-project.csproj' },
    steps: [
      ['file:my-file.cs fromPath:my-project.proj', undefined],
      ['severity:real-bad', undefined],
      [
        'line:123 column:45 code:uh-oh message:not-working',
        detail('123', '45', 'uh-oh', 'not-working'),
      ],
    ],
  },
  {
    name: 'several patterns, default project',
    matcher: {
      ...matcher({ regexp: '^file:(.+)$', file: 1 }, GRAVITY, DETAIL),
      fromPath: 'subdir/default-project.csproj',
    },
    steps: [
      ['file:my-file.cs', undefined],
      ['severity:real-bad', undefined],
      [
        'line:123 column:45 code:uh-oh message:not-working',
        {
          ...detail('123', '45', 'uh-oh', 'not-working'),
          fromPath: 'subdir/default-project.csproj',
        },
      ],
    ],
  },
];

describe('a problem matcher', () => {
  test.each(MATCH_CASES)('$name', ({ matcher: definition, steps }) => {
    const [parsed] = parseProblemMatchers(file(definition));
    expect(parsed?.owner).toBe('myMatcher');
    const running = parsed === undefined ? undefined : createProblemMatcher(parsed);
    expect(running?.owner).toBe('myMatcher');
    for (const [line, expected] of steps) {
      const match = running?.match(line);
      if (expected === undefined) {
        expect(match, line).toBeUndefined();
      } else if (expected !== 'any') {
        expect(match, line).toMatchObject(expected);
      }
    }
  });
});
