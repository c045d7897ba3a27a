import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Annotation } from '../model/run.ts';
import { createCommandSession } from './command-session.ts';
import { createMasker } from './masker.ts';
import { createMatcherSet } from './matcher-set.ts';
import { parseProblemMatchers, type ProblemMatcherDefinition } from './problem-matchers.ts';

type MatcherFile = { owner: string; fromPath?: string; pattern: Record<string, unknown>[] };

function parsed(...matchers: readonly MatcherFile[]): ProblemMatcherDefinition[] {
  return parseProblemMatchers(JSON.stringify({ problemMatcher: matchers }));
}

const one = (owner: string, regexp: string, groups: Record<string, unknown>): MatcherFile => ({
  owner,
  pattern: [{ regexp, ...groups }],
});
const ERRORS = one('my-matcher-1', 'ERROR: (.+)', { message: 1 });
const BAD_NEWS = one('my-matcher-2', 'NOT GOOD: (.+)', { message: 1 });

type Step = {
  readonly matchers: ReturnType<typeof createMatcherSet>;
  /** Feeds lines; those that were no problem come back as they stand in the log. */
  readonly feed: (...lines: string[]) => string[];
  readonly log: string[];
  readonly annotations: Annotation[];
};

function step(matcherFiles: readonly MatcherFile[], workspaceDir = '/'): Step {
  const matchers = createMatcherSet();
  matchers.add(parsed(...matcherFiles));
  const session = createCommandSession({
    masker: createMasker(),
    matchers,
    repository: { workspaceDir, name: 'my-org/workflow-repo' },
    isDebug: false,
    allowsUnsecureCommands: false,
    allowsUnsecureTokens: false,
  });
  const annotations: Annotation[] = [];
  const log: string[] = [];
  return {
    matchers,
    annotations,
    log,
    feed(...lines) {
      const output = session.handle(lines);
      annotations.push(...output.annotations);
      log.push(...output.lines);
      return output.lines.filter((line) => !line.startsWith('##['));
    },
  };
}

const messages = ({ annotations }: Step): string[] => annotations.map(({ message }) => message);

/**
 * The cases of the official runner (actions/runner, src/Test/L0/Worker/OutputManagerL0.cs, MIT) but those
 * of containers, its telemetry and its markers of composite actions, none of which exist here.
 */
describe('problem matchers in a step', () => {
  test('the first ones', () => {
    const it = step([ERRORS, BAD_NEWS]);
    expect(it.feed('ERROR: it is broken', 'NOT GOOD: that did not work')).toEqual([]);
    expect(messages(it)).toEqual(['it is broken', 'that did not work']);
    expect(it.log[0]).toBe('##[error]ERROR: it is broken');
  });

  test('one of the same owner is replaced', () => {
    const it = step([ERRORS, BAD_NEWS]);
    it.feed('ERROR: message 1', 'NOT GOOD: message 2');
    it.matchers.add(parsed(one('my-matcher-1', 'ERROR: (.+) END MESSAGE', { message: 1 })));
    const plain = it.feed(
      'ERROR: message 3 END MESSAGE',
      'ERROR: message 4',
      'NOT GOOD: message 5',
    );
    expect(messages(it)).toEqual(['message 1', 'message 2', 'message 3', 'message 5']);
    expect(plain).toEqual(['ERROR: message 4']);
  });

  test('a new one comes first', () => {
    const it = step([ERRORS, BAD_NEWS]);
    it.feed('ERROR: message 1', 'NOT GOOD: message 2');
    it.matchers.add(parsed(one('new-matcher', 'ERROR: (.+) END MESSAGE', { message: 1 })));
    it.feed('ERROR: message 3 END MESSAGE', 'ERROR: message 4', 'NOT GOOD: message 5');
    expect(messages(it)).toEqual(['message 1', 'message 2', 'message 3', 'message 4', 'message 5']);
  });

  test('one is removed', () => {
    const it = step([ERRORS, BAD_NEWS]);
    it.feed('ERROR: message 1', 'NOT GOOD: message 2');
    it.matchers.remove(['MY-matcher-1']);
    expect(it.feed('ERROR: message 3', 'NOT GOOD: message 4')).toEqual(['ERROR: message 3']);
    expect(messages(it)).toEqual(['message 1', 'message 2', 'message 4']);
  });

  test('the code is kept with the annotation, if there is one', () => {
    const it = step([one('m', '(.*): (.+)', { code: 1, message: 2 })]);
    it.feed('BAD: real bad', ': not working');
    expect(messages(it)).toEqual(['real bad', 'not working']);
    expect(it.annotations.map(({ title }) => title)).toEqual(['BAD', undefined]);
  });

  test('a loop goes on while others are quiet', () => {
    const it = step([
      {
        owner: 'm',
        pattern: [{ regexp: 'Start: .+' }, { regexp: 'Error: (.+)', message: 1, loop: true }],
      },
    ]);
    const plain = it.feed(
      'Start: hello',
      'Error: it broke',
      'Error: oh no',
      'Error: not good',
      'regular message 1',
      'Start: hello again',
      'Error: it broke again',
      'Error: real bad',
      'regular message 2',
    );
    expect(messages(it)).toEqual(['it broke', 'oh no', 'not good', 'it broke again', 'real bad']);
    expect(plain).toEqual([
      'Start: hello',
      'regular message 1',
      'Start: hello again',
      'regular message 2',
    ]);
  });

  test('a match resets the other matchers', () => {
    const it = step([
      {
        owner: 'm1',
        pattern: [
          { regexp: 'Matches both line 1: .+' },
          { regexp: 'Matches 1 only line 2: (.+)', message: 1 },
        ],
      },
      {
        owner: 'm2',
        pattern: [{ regexp: 'Matches both line 1: (.+)' }, { regexp: '(.+)', message: 1 }],
      },
    ]);
    // Asked first, so that its match comes before the other's.
    it.matchers.add(
      parsed({
        owner: 'm1',
        pattern: [
          { regexp: 'Matches both line 1: .+' },
          { regexp: 'Matches 1 only line 2: (.+)', message: 1 },
        ],
      }),
    );
    const plain = it.feed(
      'Matches both line 1: hello',
      'Matches 1 only line 2: it broke',
      'regular message 1',
      'regular message 2',
      'Matches both line 1: hello again',
      'oh no, another error',
    );
    expect(messages(it)).toEqual(['it broke', 'oh no, another error']);
    expect(plain).toEqual([
      'Matches both line 1: hello',
      'regular message 1',
      'regular message 2',
      'Matches both line 1: hello again',
    ]);
  });

  test('line and column are numbers or nothing', () => {
    const it = step([
      one('m', String.raw`\((.+),(.+)\): (.+)`, { line: 1, column: 2, message: 3 }),
    ]);
    it.feed('(12,34): real bad', '(12,thirty-four): it is broken', '(twelve,34): not working');
    expect(it.annotations.map(({ message, line, column }) => [message, line, column])).toEqual([
      ['real bad', 12, 34],
      ['it is broken', 12, undefined],
      ['not working', undefined, 34],
    ]);
  });

  test('commands are not for matchers', () => {
    const it = step([one('m', 'ERROR: (.+)', { message: 1 })]);
    it.feed(
      'this line is an ERROR: it is broken',
      '##[debug]this line is a command even though it contains ERROR: not working',
      'this line is a command too ##[debug]even though it contains ERROR: not working again',
      '##[not-command]this line is an ERROR: it is broken again',
    );
    expect(messages(it)).toEqual(['it is broken', 'it is broken again']);
  });

  test('colours are taken off first', () => {
    const it = step([one('m', '^the error: (.+)$', { message: 1 })]);
    it.feed('the error: \u001B[31mred, \u001B[1;31mbright red, \u001B[mreset');
    expect(messages(it)).toEqual(['red, bright red, reset']);
    expect(it.log).toEqual(['##[error]the error: red, bright red, reset']);
  });

  test('severity: error by default, one that is not known is none', () => {
    const it = step([
      one('m1', '(.*): (.+)', { severity: 1, message: 2 }),
      one('m2', 'ERROR! (.+)', { message: 1 }),
    ]);
    const plain = it.feed(
      'ERRor: real bad',
      'WARNing: not great',
      'info: hey',
      ': not working',
      'ERROR! uh oh',
    );
    expect(it.annotations.map(({ message, level }) => [message, level])).toEqual([
      ['real bad', 'error'],
      ['not great', 'warning'],
      ['not working', 'error'],
      ['uh oh', 'error'],
    ]);
    expect(plain).toEqual(['info: hey']);
  });

  test('an expression that takes for ever is removed, the line and the others stay', () => {
    const it = step([
      one('email', String.raw`^([a-z.]+)@(([a-z0-9]+\.?)+)+$`, { message: 0 }),
      one('err', 'ERR: (.+)', { message: 1 }),
    ]);
    const slow = `t@${'t'.repeat(45)}%20`;
    const plain = it.feed('john.doe@contoso.com', slow, 'jane.doe@contoso.com', 'ERR: this error');
    expect(it.annotations.map(({ level }) => level)).toEqual(['error', 'error', 'warning']);
    expect(messages(it).slice(0, 2)).toEqual(['john.doe@contoso.com', 'this error']);
    expect(messages(it)[2]).toContain("'email' was removed");
    expect(plain).toEqual([slow, 'jane.doe@contoso.com']);
  });

  test('a line of more than 8,192 characters is not looked at', () => {
    const it = step([ERRORS]);
    it.feed(`ERROR: ${'x'.repeat(8_192)}`, 'ERROR: short');
    expect(messages(it)).toEqual(['short']);
  });

  test('matches over several lines stay within one step', () => {
    const matchers = createMatcherSet();
    matchers.add(
      parsed({ owner: 'm', pattern: [{ regexp: 'Start' }, { regexp: '(.+)', message: 1 }] }),
    );
    const [first, second] = [matchers.follow(), matchers.follow()];
    expect(first.match(['Start']).found).toEqual([]);
    expect(second.match(['no error']).found).toEqual([]);
    expect(first.match(['an error']).found).toHaveLength(1);
  });
});

describe('files of problems', () => {
  const workspaceDir = realpathSync(mkdtempSync(join(tmpdir(), 'matcher-files-')));
  afterAll(() => rmSync(workspaceDir, { recursive: true, force: true }));

  function repository(path: string, url: string): string {
    const folder = join(workspaceDir, path);
    mkdirSync(folder, { recursive: true });
    execFileSync('git', ['init', '--quiet'], { cwd: folder });
    execFileSync('git', ['remote', 'add', 'origin', url], { cwd: folder });
    return folder;
  }
  function fileAt(path: string): string {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '');
    return path;
  }

  const mine = repository('workflow-repo', 'https://github.com/my-org/workflow-repo');
  const nestedOther = repository('workflow-repo/nested', 'https://github.com/my-org/other-repo');
  repository('other-repo', 'https://github.com/my-org/other-repo');
  const nestedMine = repository('other-repo/nested', 'https://github.com/my-org/workflow-repo');
  const ssh = repository('ssh', 'git@github.com:my-org/workflow-repo.git');
  const deep = Array.from({ length: 55 }, () => 'd').join('/');

  test.each([
    // The workspace itself is the repository of a local run, where the official runner has a folder in it.
    [
      'in the workspace, outside of repositories in it',
      fileAt(join(workspaceDir, 'no-repo.txt')),
      'no-repo.txt',
    ],
    ['in the repository', fileAt(join(mine, 'a.txt')), 'a.txt'],
    ['relative to the workspace', 'workflow-repo/a.txt', 'a.txt'],
    ['in a folder of the repository', fileAt(join(mine, 'sub/sub2/b.txt')), 'sub/sub2/b.txt'],
    ['deeper than anybody looks', fileAt(join(mine, deep, 'c.txt')), undefined],
    ['in another repository within it', fileAt(join(nestedOther, 'd.txt')), undefined],
    ['in another repository', fileAt(join(workspaceDir, 'other-repo/e.txt')), undefined],
    ['in the repository within another one', fileAt(join(nestedMine, 'f.txt')), 'f.txt'],
    ['in the repository by SSH', fileAt(join(ssh, 'g.txt')), 'g.txt'],
    ['that does not exist', join(mine, 'none.txt'), undefined],
    [
      'outside of the workspace',
      fileAt(join(mkdtempSync(join(tmpdir(), 'out-')), 'h.txt')),
      undefined,
    ],
  ])('%s', (_, file, shown) => {
    const it = step([one('m', '(.+): (.+)', { file: 1, message: 2 })], workspaceDir);
    it.feed(`${file}: some error`);
    expect(it.annotations).toHaveLength(1);
    expect(it.annotations[0]?.message).toBe('some error');
    expect(it.annotations[0]?.file).toBe(shown);
  });

  test.each([
    [
      'from the project that is named',
      [one('m', String.raw`(.+): (.+) \[(.+)\]`, { file: 1, message: 2, fromPath: 3 })],
      ' [workflow-repo/some-project/some-project.proj]',
    ],
    [
      'from the default project',
      [
        {
          ...one('m', '(.+): (.+)', { file: 1, message: 2 }),
          fromPath: 'workflow-repo/some-project/some-project.proj',
        },
      ],
      '',
    ],
  ])('%s', (_, matchers, ending) => {
    fileAt(join(mine, 'some-project/some-directory/some-file.txt'));
    const it = step(matchers, workspaceDir);
    it.feed(`some-directory/some-file.txt: some error${ending}`);
    expect(it.annotations[0]).toMatchObject({
      message: 'some error',
      file: 'some-project/some-directory/some-file.txt',
    });
  });
});
