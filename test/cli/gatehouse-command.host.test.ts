/* `gatehouse` itself: help, completion, and `serve --testing`. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/command-table.ts';
import { gatehouseCommand } from '../support/gatehouse-command.ts';

const command = gatehouseCommand();
const BIN = join(import.meta.dirname, '..', '..', 'bin', 'gatehouse');

describe('help', () => {
  test('of all: every command, on the standard output', async () => {
    const { code, out, err } = await command.run(['--help']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const named = [...out.matchAll(/^ {2}([a-z-]+(?: [a-z-]+)?) {2,}\S/gm)].map(([, name]) => name);
    expect(named).toEqual(['serve', 'runner', 'load', 'verify', ...COMMANDS.keys()]);
    expect(out.split('\n').filter((line) => line.length > 110)).toEqual([]);
  });

  test('without a word it is wrong, and help is beside the results', async () => {
    const { code, out, err } = await command.run([]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('Usage: gatehouse <command> [options]\n');
  });

  test('of a command, by three spellings, and of a group', async () => {
    const texts = await Promise.all(
      [
        ['context', 'set', '--help'],
        ['help', 'context', 'set'],
        ['-h', 'context', 'set'],
      ].map((args) => command.run(args)),
    );
    expect(new Set(texts.map(({ code, out }) => `${code}${out}`)).size).toBe(1);
    expect(texts[0]?.out).toContain('Usage: gatehouse context set <name> --url URL [options]\n');
    const group = await command.run(['context']);
    expect(group).toMatchObject({ code: 2, out: '' });
    expect(group.err).toContain('\n  use ');
  });

  test.each([
    [['chekc'], 'there is no command chekc; did you mean check?'],
    [
      ['context', 'ste'],
      'there is no command context ste; did you mean set?; there are set, use, list, delete',
    ],
    [['--zzzzzz'], 'there is no option --zzzzzz'],
  ])('%s is refused', async (args, message) => {
    const { code, out, err } = await command.run(args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toBe(`error: ${message}\nSee: gatehouse --help\n`);
  });

  test('colours are for terminals, and NO_COLOR refuses them', async () => {
    const colours = async (environment: Readonly<Record<string, string>>): Promise<boolean> =>
      (await command.run(['chekc'], environment)).err.includes('\u001b');
    expect(await colours({})).toBe(false);
    expect(await colours({ FORCE_COLOR: '1' })).toBe(true);
    expect(await colours({ FORCE_COLOR: '1', NO_COLOR: '1' })).toBe(false);
  });
});

describe('completion', () => {
  const hasShell = (name: string): boolean =>
    (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, name)));

  test('bash completes commands, second words and options', async () => {
    const { out } = await command.run(['completion', 'bash']);
    writeFileSync(join(command.folder, 'completion.bash'), out);
    const complete = (...words: readonly string[]): readonly string[] => {
      const script = `source completion.bash; COMP_WORDS=(gatehouse ${words.map((word) => `'${word}'`).join(' ')})
        COMP_CWORD=${words.length}; _gatehouse; echo "\${COMPREPLY[@]}"`;
      const text = execFileSync('bash', ['-c', script], { cwd: command.folder, encoding: 'utf8' });
      return text.trim().split(' ');
    };
    expect(complete('che')).toEqual(['check']);
    expect(complete('context', '')).toEqual(['set', 'use', 'list', 'delete', '--help']);
    expect(complete('context', 'set', '--admin')).toEqual(['--admin-secret-file']);
    expect(complete('check', '--ex')).toEqual(['--exact']);
    expect(complete('check', '--file', 'completion.b')).toEqual(['completion.bash']);
  });

  test.skipIf(!hasShell('fish'))('fish completes commands, second words and options', async () => {
    const { out } = await command.run(['completion', 'fish']);
    writeFileSync(join(command.folder, 'completion.fish'), out);
    const complete = (line: string): string =>
      execFileSync('fish', ['-c', `source completion.fish; complete -C "gatehouse ${line}"`], {
        cwd: command.folder,
        encoding: 'utf8',
      });
    expect(complete('chec')).toBe('check\tAsks whether a subject holds a relation on an object.\n');
    expect(complete('context us')).toBe('use\tMakes a context the current one.\n');
    expect(complete('check --exac')).toContain('--exact\t');
  });

  test.skipIf(!hasShell('zsh'))('zsh reads its script', async () => {
    const { out } = await command.run(['completion', 'zsh']);
    writeFileSync(join(command.folder, '_gatehouse'), out);
    execFileSync('zsh', ['-n', '_gatehouse'], { cwd: command.folder });
    expect(out).toMatch(/^#compdef gatehouse\n/);
  });

  test('another shell is refused', async () => {
    const { code, err } = await command.run(['completion', 'fishh']);
    expect(code).toBe(2);
    expect(err).toContain('completion: name a shell, one of bash, zsh, fish; did you mean fish?');
  });
});

describe('serve --testing', () => {
  test('answers, keeps nothing, and is not for data that stays', async () => {
    const temporary = join(command.folder, 'tmp');
    execFileSync('mkdir', [temporary]);
    const child = spawn(BIN, ['serve', '--testing'], {
      env: {
        PATH: process.env['PATH'],
        HOME: command.folder,
        TMPDIR: temporary,
        GATEWAY_CONNECT_PORT: '0',
        GATEWAY_METRICS_PORT: '0',
        GATEWAY_WORKERS: '1',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let log = '';
    const url = await new Promise<string>((resolve, reject) => {
      child.stderr.on('data', (part: Buffer) => {
        log += part.toString();
        const port = /"port":(\d+)/.exec(log)?.[1];
        if (port !== undefined && log.includes('"msg":"ready"'))
          resolve(`http://127.0.0.1:${port}`);
      });
      child.on('exit', () => reject(new Error(log)));
    });
    expect(
      readdirSync(temporary).filter((name) => name.startsWith('gatehouse-testing-')),
    ).toHaveLength(1);
    const asked = ['check', 'resource:plan#viewer@user:ann', '--url', url];
    expect(await command.run(asked)).toEqual({ code: 1, out: 'deny\n', err: '' });
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await gone).toEqual([0, null]);
    expect(readdirSync(temporary).filter((name) => name.startsWith('gatehouse-testing-'))).toEqual(
      [],
    );
  });

  test.each([
    ['DATABASE_URL', [], { DATABASE_URL: 'postgres://a/b' }],
    ['GATEWAY_DATA_DIR', [], { GATEWAY_DATA_DIR: 'here' }],
    ['--instances', ['--instances', '2'], {}],
  ])('%s is refused beside it', async (name, args, environment) => {
    expect(await command.run(['serve', '--testing', ...args], environment)).toEqual({
      code: 2,
      out: '',
      err: `error: ${name}: --testing is one process, and keeps its data itself\n`,
    });
  });

  test('its help, and that of programs that read their own arguments', async () => {
    expect((await command.run(['serve', '--help'])).out).toContain('Usage: gatehouse serve');
    expect((await command.run(['runner', '--help'])).out).toContain(
      'Usage: gatehouse-runner <command>',
    );
    expect((await command.run(['verify', '--help'])).out).toContain('usage: npm run verify');
    expect((await command.run(['serve', '--nope'])).code).toBe(2);
  });
});
