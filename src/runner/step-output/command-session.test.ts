import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Annotation } from '../model/run.ts';
import {
  type CommandSession,
  type CommandSessionOptions,
  createCommandSession,
} from './command-session.ts';
import { createMasker, type Masker } from './masker.ts';
import { createMatcherSet } from './matcher-set.ts';

const workspaceDir = mkdtempSync(join(tmpdir(), 'session-'));
afterAll(() => rmSync(workspaceDir, { recursive: true, force: true }));

type Step = {
  readonly session: CommandSession;
  readonly masker: Masker;
  /** What lines leave in the log. */
  readonly log: (...lines: string[]) => string[];
  readonly annotations: Annotation[];
};

function step(options: Partial<CommandSessionOptions> = {}): Step {
  const masker = createMasker();
  const annotations: Annotation[] = [];
  const session = createCommandSession({
    masker,
    matchers: createMatcherSet(),
    repository: { workspaceDir },
    isDebug: false,
    allowsUnsecureCommands: true,
    allowsUnsecureTokens: false,
    jobId: 'build',
    stepNumber: 3,
    ...options,
  });
  const log = (...lines: string[]): string[] => {
    const output = session.handle(lines);
    annotations.push(...output.annotations);
    return output.lines;
  };
  return { session, masker, log, annotations };
}

/** The cases of the official runner: actions/runner, src/Test/L0/Worker/ActionCommandManagerL0.cs, MIT. */
describe('stop-commands', () => {
  test('stops until the token comes', () => {
    const { session, log } = step();
    expect(log('##[stop-commands]stopToken')).toEqual(['##[stop-commands]***']);
    expect(log('##[set-env name=foo]bar')).toEqual(['##[set-env name=foo]bar']);
    expect(session.env.size).toBe(0);
    expect(log('##[stopToken]')).toEqual(['##[***]']);
    expect(log('##[set-env name=foo]bar')).toEqual([]);
    expect([...session.env]).toEqual([['foo', 'bar']]);
  });

  test('a token in the other form, in one go', () => {
    const { session, log } = step();
    log(
      '::stop-commands::randomToken',
      '::set-env name=a::1',
      '::randomToken::',
      '::set-env name=b::2',
    );
    expect([...session.env.keys()]).toEqual(['b']);
  });

  test('the token stays hidden; one of six characters does not', () => {
    const { masker, log } = step();
    log('::stop-commands::randomToken', '::randomToken::');
    expect(masker.mask('randomToken')).toBe('***');
    log('::stop-commands::sixsix', '::sixsix::');
    expect(masker.mask('sixsix')).toBe('sixsix');
  });

  test.each(['stop-commands', '', 'set-env', 'pause-logging'])(
    'token %j fails the step',
    (token) => {
      const { session, log, annotations } = step();
      log(`::stop-commands::${token}`, '::set-env name=a::1');
      expect(session.hasFailed).toBe(true);
      expect(annotations[0]?.level).toBe('error');
      expect(session.env.get('a')).toBe('1');
    },
  );

  test.each(['stop-commands', '', 'set-env'])(
    'token %j is taken where that is allowed',
    (token) => {
      const { session, log } = step({ allowsUnsecureTokens: true });
      log(`::stop-commands::${token}`, '::set-output name=a::1', '::::');
      expect(session.hasFailed).toBe(false);
      expect(session.outputs.size).toBe(0);
    },
  );
});

describe('echo', () => {
  test('turns the echo of commands on and off', () => {
    const { log } = step();
    const set = '::set-env name=a::1';
    expect(log(set)).toEqual([]);
    expect(log('::echo::on', set)).toEqual([set]);
    expect(log('::echo::off', set)).toEqual(['::echo::off']);
    expect(log('::echo::ON', set)).toEqual([set]);
    expect(log('::echo::Off   ', set)).toEqual(['::echo::Off   ']);
  });

  test('is on from the start while debugging', () => {
    const { log } = step({ isDebug: true });
    const set = '::set-env name=a::1';
    expect(log(set, '::echo::off', set)).toEqual([set, '::echo::off']);
  });

  test.each(['::echo::invalid', '::echo::'])('%s fails the step', (line) => {
    const { session, log } = step();
    expect(log(line)[0]).toContain('##[error]');
    expect(session.hasFailed).toBe(true);
  });
});

describe('places of annotations', () => {
  test.each([
    ['line=1,endLine=2,col=1,endColumn=2', { line: 1, endLine: 2 }],
    ['col=1,endColumn=2', {}],
    ['endLine=1', { line: 1, endLine: 1 }],
    ['line=1,endColumn=2', { line: 1, column: 2, endColumn: 2 }],
    ['line=,endLine=3', { line: 3, endLine: 3 }],
    ['line=4,endLine=3', {}],
    ['line=1,endLine=1,col=3,endColumn=2', { line: 1, endLine: 1 }],
    ['line=1,endLine=1,col=1,endColumn=2', { line: 1, endLine: 1, column: 1, endColumn: 2 }],
    ['line=1,col=1,file=test.txt', { line: 1, column: 1, file: 'test.txt' }],
    ['line=x,col=-1', {}],
  ])('%s', (properties, place) => {
    const { log, annotations } = step();
    log(`::warning ${properties}::this is a warning`);
    const [annotation] = annotations;
    expect(JSON.parse(JSON.stringify(annotation))).toEqual({
      level: 'warning',
      message: 'this is a warning',
      jobId: 'build',
      stepNumber: 3,
      ...place,
    });
  });

  test.each([
    [`${workspaceDir}/src/a.js`, 'src/a.js'],
    ['/elsewhere/a.js', '/elsewhere/a.js'],
    ['src\\a.js', 'src/a.js'],
  ])('file %s', (file, shown) => {
    const { log, annotations } = step();
    log(`::error file=${file},title=Title%3A one::message`);
    expect(annotations[0]).toMatchObject({ file: shown, title: 'Title: one', message: 'message' });
  });
});

describe('add-mask', () => {
  test('hides each line, and the whole', () => {
    const { masker, log } = step();
    expect(log('::add-mask::abc%0Ddef%0Aghi%0D%0Ajkl', 'abc def ghi jkl')).toEqual([
      '*** *** *** ***',
    ]);
    log('::add-mask:: %0D  %0A   %0D%0A    %0D');
    expect(masker.mask('abc\rdef\nghi\r\njkl')).toBe('***');
    for (const blank of ['', ' ', '  ', '   ', '    ']) {
      expect(masker.mask(blank)).toBe(blank);
    }
  });

  test('is never shown, and warns when it has no value', () => {
    const { log, annotations } = step({ isDebug: true });
    expect(log('::add-mask::hidden-value')).toEqual(['::add-mask::***']);
    log('::add-mask::');
    expect(annotations[0]).toMatchObject({ level: 'warning' });
  });

  test('hides what follows it in the same block only from there on', () => {
    const { log } = step();
    expect(log('early word', '::add-mask::word', 'late word')).toEqual(['early word', 'late ***']);
  });
});

describe('what commands set', () => {
  test('outputs, state, variables and folders', () => {
    const { session, log } = step();
    log(
      '::set-output name=a::1%0A2',
      '::set-output name=a::3',
      '::save-state name=s::t',
      '::set-env name=E::v',
      '::add-path::/one',
      '::add-path::/two',
      '::add-path::/one',
    );
    expect([...session.outputs]).toEqual([['a', '3']]);
    expect([...session.state]).toEqual([['s', 't']]);
    expect([...session.env]).toEqual([['E', 'v']]);
    expect(session.path).toEqual(['/two', '/one']);
  });

  test.each(['set-output', 'save-state'])('%s is deprecated: one warning a step', (name) => {
    const { log, annotations } = step();
    log(`::${name} name=a::1`, `::${name} name=b::2`);
    expect(annotations).toHaveLength(1);
    expect(annotations[0]).toMatchObject({ level: 'warning' });
  });

  test.each(['::set-env name=a::1', '::add-path::/one'])('%s is disabled by default', (line) => {
    const { session, log, annotations } = step({ allowsUnsecureCommands: false });
    log(line);
    expect(session.hasFailed).toBe(true);
    expect(session.env.size + session.path.length).toBe(0);
    expect(annotations[0]?.message).toContain('ACTIONS_ALLOW_UNSECURE_COMMANDS');
  });

  test.each(['::set-env::1', '::set-output::1', '::save-state name=::1', '::add-path::'])(
    '%s lacks something: the step fails',
    (line) => {
      const { session, log } = step();
      log(line);
      expect(session.hasFailed).toBe(true);
    },
  );

  test('NODE_OPTIONS is refused, the step goes on', () => {
    const { session, log, annotations } = step();
    log('::set-env name=node_options::--require=/evil.js');
    expect(session.env.size).toBe(0);
    expect(session.hasFailed).toBe(false);
    expect(annotations[0]?.level).toBe('error');
  });
});

describe('the log', () => {
  test('shows what commands say, groups, and debug lines only while debugging', () => {
    const lines = [
      '::group::Build',
      '::error::no%0Agood',
      '::debug::x',
      '::endgroup::',
      '::odd::y',
    ];
    expect(step().log(...lines)).toEqual([
      '##[group]Build',
      '##[error]no',
      'good',
      '##[endgroup]',
      '::odd::y',
    ]);
    expect(step({ isDebug: true }).log('::debug::x')).toEqual(['##[debug]x']);
  });

  test('hides secrets in all it shows and says', () => {
    const { masker, log, annotations } = step({ isDebug: true });
    masker.add('s3cret-value');
    const shown = log(
      's3cret-value',
      '::error file=s3cret-value.js,title=s3cret-value::a s3cret-value',
      '::group::s3cret-value',
      '::debug::s3cret-value',
      '::echo::s3cret-value',
      '::set-env name=a::s3cret-value',
      '::stop-commands::s3cret-value',
      'std::s3cret-value',
    );
    expect(JSON.stringify([shown, annotations])).not.toContain('s3cret-value');
    expect(annotations[0]).toMatchObject({ file: '***.js', title: '***', message: 'a ***' });
  });

  test('ten annotations of a level, and a line that says that there were more', () => {
    const { log, annotations } = step();
    const shown = log(
      ...Array.from({ length: 14 }, (_, index) => `::notice::n${index}`),
      '::error::e',
    );
    expect(annotations.filter(({ level }) => level === 'notice')).toHaveLength(10);
    expect(annotations.filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(shown).toHaveLength(14 + 1 + 1);
  });

  test('messages are masked before they are cut to 4,096 characters', () => {
    const { masker, log, annotations } = step();
    masker.add('secret-at-the-border');
    log(`::error::${'x'.repeat(4_085)}secret-at-the-border and more and more`);
    expect(annotations[0]?.message).toHaveLength(4_096);
    expect(annotations[0]?.message).not.toContain('secret-');
  });

  test('a command longer than a line of the log is obeyed, and shown in pieces', () => {
    const { session, log } = step({ isDebug: true });
    const value = 'v'.repeat(200_000);
    const shown = log(`::set-output name=a::${value}`);
    expect(session.outputs.get('a')).toBe(value);
    expect(shown.length).toBeGreaterThan(4);
    for (const line of shown) {
      expect(line.length).toBeLessThan(65_600);
    }
  });

  test('what the runner says itself is treated alike', () => {
    const { session, masker } = step();
    masker.add('hidden');
    expect(session.annotate('warning', 'a hidden thing')).toMatchObject({
      lines: ['##[warning]a *** thing'],
      annotations: [{ level: 'warning', message: 'a *** thing' }],
    });
  });
});

describe('matcher files', () => {
  const matcherFile = join(workspaceDir, 'matcher.json');
  writeFileSync(
    matcherFile,
    JSON.stringify({
      problemMatcher: [{ owner: 'my-matcher', pattern: [{ regexp: '^ERROR: (.+)$', message: 1 }] }],
    }),
  );

  test.each([['matcher.json'], [matcherFile]])('add-matcher %s', (path) => {
    const { log, annotations } = step();
    log('ERROR: before', `::add-matcher::${path}`, 'ERROR: after');
    expect(annotations.map(({ message }) => message)).toEqual(['after']);
  });

  test.each(['::remove-matcher owner=MY-matcher::', '::remove-matcher::matcher.json'])(
    '%s',
    (line) => {
      const { log, annotations } = step();
      log('::add-matcher::matcher.json', line, 'ERROR: after');
      expect(annotations).toEqual([]);
    },
  );

  test.each(['::add-matcher::', '::remove-matcher::', '::remove-matcher owner=a::matcher.json'])(
    '%s is a warning',
    (line) => {
      const { session, log, annotations } = step();
      log(line);
      expect(annotations[0]?.level).toBe('warning');
      expect(session.hasFailed).toBe(false);
    },
  );

  test.each(['::add-matcher::no-such-file', '::add-matcher::.'])('%s fails the step', (line) => {
    const { session, log } = step();
    log(line);
    expect(session.hasFailed).toBe(true);
  });
});
