import { describe, expect, test } from 'vitest';
import { isCommandName, mayHoldCommand, parseCommand } from './command.ts';

/**
 * The cases of the official runner (actions/runner, src/Test/L0/Worker/ActionCommandL0.cs, MIT), with
 * `notice` where it has a made-up command.
 */
const OFFICIAL: readonly (readonly [line: string, properties: object, value: string])[] = [
  ['##[notice k1=v1;]msg', { k1: 'v1' }, 'msg'],
  ['##[notice]', {}, ''],
  ['##[notice k1=%3B=%0D=%0A=%5D;]%3B-%0D-%0A-%5D', { k1: ';=\r=\n=]' }, ';-\r-\n-]'],
  [
    '##[notice k1=%253B=%250D=%250A=%255D;]%253B-%250D-%250A-%255D',
    { k1: '%3B=%0D=%0A=%5D' },
    '%3B-%0D-%0A-%5D',
  ],
  ['##[notice k1=;k2=;]', {}, ''],
  ['>>>   ##[notice k1=v1;]msg', { k1: 'v1' }, 'msg'],
  ['::notice k1=v1,::msg', { k1: 'v1' }, 'msg'],
  ['::notice::', {}, ''],
  ['::notice k1=;=%2C=%0D=%0A=]=%3A,::;-%0D-%0A-]-:-,', { k1: ';=,=\r=\n=]=:' }, ';-\r-\n-]-:-,'],
  [
    '::notice k1=;=%252C=%250D=%250A=]=%253A,::;-%250D-%250A-]-:-,',
    { k1: ';=%2C=%0D=%0A=]=%3A' },
    ';-%0D-%0A-]-:-,',
  ],
  ['::notice k1=,k2=,::', {}, ''],
  ['::notice k1=v1::', { k1: 'v1' }, ''],
  ['   ::notice k1=v1,::msg', { k1: 'v1' }, 'msg'],
];

describe('parseCommand', () => {
  test.each(OFFICIAL)('%j', (line, properties, value) => {
    const command = parseCommand(line);
    expect(command?.name).toBe('notice');
    expect(Object.fromEntries(command?.properties ?? [])).toEqual(properties);
    expect(command?.value).toBe(value);
  });

  test.each([
    ['   >>>   ::notice k1=v1,::msg'],
    ['::notice'],
    ['::unknown::value'],
    ['::internal-set-repo-path repoFullName=a/b::/x'],
    ['##[unknown]value'],
    ['##[notice'],
    ['##[command]/usr/bin/git version'],
    ['std::vector<int>::iterator'],
    [':notice::'],
    [''],
  ])('%j is an ordinary line', (line) => {
    expect(parseCommand(line)).toBeUndefined();
  });

  test.each([
    ['::NOTICE File=a.js, Line = 3 ::x', { file: 'a.js', line: ' 3' }],
    ['::notice title=a%3Ab::x', { title: 'a:b' }],
    ['::notice title=%2525::x', { title: '%25' }],
    ['::notice title=a=b::x', { title: 'a=b' }],
  ])('names in any case, spaces around them: %j', (line, properties) => {
    expect(Object.fromEntries(parseCommand(line)?.properties ?? [])).toEqual(properties);
  });

  test('a resume token is a command of its own', () => {
    expect(parseCommand('::Token-1::')).toBeUndefined();
    expect(parseCommand('::Token-1::', 'token-1')).toMatchObject({ name: 'token-1', value: '' });
    expect(parseCommand('##[Token-1]', 'TOKEN-1')).toMatchObject({ name: 'token-1' });
  });

  test('a colon command that is none may still hold a bracket command', () => {
    expect(parseCommand('::unknown::##[warning]careful')).toMatchObject({
      name: 'warning',
      value: 'careful',
    });
  });
});

test('names and the quick look', () => {
  expect(isCommandName('Add-Mask')).toBe(true);
  expect(isCommandName('pause-logging')).toBe(false);
  expect(mayHoldCommand('a\nb ::c\n')).toBe(true);
  expect(mayHoldCommand('a\nb ##[c\n')).toBe(true);
  expect(mayHoldCommand('a: b [c] #')).toBe(false);
});
