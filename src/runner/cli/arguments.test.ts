import { expect, test } from 'vitest';
import { parseCommandLine } from './arguments.ts';
import { helpText } from './command-line.ts';
import { COMMANDS } from './command-table.ts';

test('an option has the same letter and kind in every command, and a letter one option', () => {
  const options = [...COMMANDS.values()].flatMap(({ options: own }) => Object.entries(own));
  for (const [name, option] of options) {
    for (const [other, { short, value }] of options) {
      const isSame = name === other;
      if (isSame) expect([name, short]).toEqual([name, option.short]);
      if (isSame) expect([name, value === undefined]).toEqual([name, option.value === undefined]);
      if (!isSame && short !== undefined) expect([other, name, short]).not.toContain(option.short);
    }
  }
});

test('the help of each command names all its options, within 100 columns', () => {
  for (const [name, { options, usage }] of COMMANDS) {
    const text = helpText(name);
    for (const option of Object.keys(options)) expect(text).toContain(`--${option}`);
    for (const one of usage) expect(text).toContain(`runner ${one}`);
    expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
  }
  expect(helpText(undefined)).toContain('runner <command> [options]');
});

test('options may stand before the command; -l is the command list', () => {
  expect(parseCommandLine(['-w', 'x', 'run', 'ci', '-i', 'a=b=c', '-i', 'd='])).toMatchObject({
    command: 'run',
    words: ['ci'],
    workspace: 'x',
    inputs: { a: 'b=c', d: '' },
  });
  expect(parseCommandLine(['-l', '--json'])).toMatchObject({ command: 'list', isJson: true });
  expect(parseCommandLine([])).toMatchObject({ command: undefined, isHelp: true });
  expect(
    parseCommandLine([
      'run',
      'ci',
      '-s',
      'A=b=c',
      '-s',
      'B',
      '--matrix',
      'k:a:b',
      '--matrix',
      'k:c',
      '-j',
      'x',
      '-j',
      'y',
      '-n',
    ]),
  ).toMatchObject({
    secrets: [
      { name: 'A', value: 'b=c' },
      { name: 'B', value: undefined },
    ],
    matrix: { k: ['a:b', 'c'] },
    jobs: ['x', 'y'],
    isDryRun: true,
  });
  expect(() => parseCommandLine(['run', 'ci', '-s', 'hunter2!'])).toThrow(
    /^--secret: must be NAME or NAME=VALUE$/,
  );
  expect(() => parseCommandLine(['runs', '-i', 'a=b'])).toThrow('--input is no option of runs');
});
