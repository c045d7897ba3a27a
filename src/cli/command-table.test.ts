import { describe, expect, test } from 'vitest';
import { commandHelp } from '../command-line/command-help.ts';
import { COMMANDS } from './command-table.ts';

const rows = [...COMMANDS];

describe('the table of commands', () => {
  test('an option has one kind and one letter in all commands, and a letter one option', () => {
    const kinds = new Map<string, string>();
    const letters = new Map<string, string>();
    for (const [, { options }] of rows) {
      for (const [name, { short = '', value }] of Object.entries(options)) {
        const kind = `${value === undefined ? 'flag' : 'value'} ${short}`;
        expect(kinds.get(name) ?? kind, name).toBe(kind);
        kinds.set(name, kind);
        if (short === '') continue;
        expect(letters.get(short) ?? name, short).toBe(name);
        letters.set(short, name);
      }
    }
  });

  test.each(rows)('%s: usage, help that fits, examples of its own', (name, command) => {
    expect(Object.keys(command.options)).toContain('help');
    for (const text of command.usage) expect(text.startsWith(name), text).toBe(true);
    expect(command.summary).toMatch(/^[A-Z].*\.$/);
    const long = commandHelp('gatehouse', command)
      .split('\n')
      .filter((line) => line.length > 120);
    expect(long).toEqual([]);
    for (const text of command.examples ?? []) {
      expect(text.startsWith('#') || text.includes(`gatehouse ${name}`), text).toBe(true);
    }
  });

  test.each(rows)('%s: what it does is there', async (_, command) => {
    expect(await command.load()).toBeTypeOf('function');
  });
});
