import type { CliOption } from '../command-line/command-help.ts';
import { ASK } from './ask/ask-commands.ts';
import { CONTEXT } from './contexts/context-commands.ts';
import type { CliCommandRow, CommandTable } from './core/command.ts';
import { MODEL } from './models/model-commands.ts';
import { OPERATE } from './operate/operate-commands.ts';
import { PEERS } from './peers/peer-commands.ts';
import { TUPLES } from './tuples/tuple-commands.ts';

/**
 * Groups of commands in the order of the general help. A new command is a row of one of these
 * tables.
 */
export const GROUPS: readonly (readonly [title: string, table: CommandTable])[] = [
  ['Ask', ASK],
  ['Tuples', TUPLES],
  ['Models', MODEL],
  ['From another service', PEERS],
  ['Operate', OPERATE],
  ['This command', CONTEXT],
];

/** Every command by its name. */
export const COMMANDS: ReadonlyMap<string, CliCommandRow> = new Map(
  GROUPS.flatMap(([, table]) => Object.entries(table)),
);

/** Every option of every command. */
export const ALL_OPTIONS: ReadonlyMap<string, CliOption> = new Map([
  ...[...COMMANDS.values()].flatMap(({ options }) => Object.entries(options)),
  ['version', { short: 'V', help: [] }],
]);

/** Second words of a group such as `model`; empty for a command of one word. */
export function secondWords(first: string): readonly string[] {
  return [...COMMANDS.keys()].flatMap((name) => {
    const [group, second] = name.split(' ');
    return group === first && second !== undefined ? second : [];
  });
}
