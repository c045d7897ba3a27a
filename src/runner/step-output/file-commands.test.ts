import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import {
  maskSummary,
  parseEnvFile,
  parsePairs,
  parsePathFile,
  readCommandFile,
} from './file-commands.ts';
import { createMasker } from './masker.ts';

const folder = mkdtempSync(join(tmpdir(), 'file-commands-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let fileCount = 0;
function fileWith(content: string | Buffer): string {
  fileCount += 1;
  const path = join(folder, String(fileCount));
  writeFileSync(path, content);
  return path;
}

const asIs = (text: string): string => text;

const MULTI_LINE = ['NAME<<EOF', 'line one', 'line two', 'line three', 'EOF'];

/**
 * The cases of the official runner for GITHUB_OUTPUT, GITHUB_STATE and GITHUB_ENV, which share one form
 * (actions/runner, src/Test/L0/Worker/{SetOutput,SaveState,SetEnv}FileCommandL0.cs, MIT). Each file
 * starts with a byte order mark, as there; `lines` are joined by `joiner`.
 */
type Case = {
  readonly name: string;
  readonly lines: readonly string[];
  readonly joiner?: string;
  readonly pairs?: Readonly<Record<string, string>>;
  readonly problem?: string;
};
const SHARED_CASES: readonly Case[] = [
  { name: 'empty file', lines: [], pairs: {} },
  { name: 'one pair', lines: ['NAME=MY VALUE'], pairs: { NAME: 'MY VALUE' } },
  {
    name: 'empty lines between pairs',
    lines: ['', 'NAME=my value', '', 'NAME_2=my second value', ''],
    pairs: { NAME: 'my value', NAME_2: 'my second value' },
  },
  { name: 'empty value', lines: ['NAME='], pairs: { NAME: '' } },
  {
    name: 'several pairs',
    lines: ['NAME=my value', 'NAME_2=', 'NAME_3=my third value'],
    pairs: { NAME: 'my value', NAME_2: '', NAME_3: 'my third value' },
  },
  {
    name: 'equal signs in values',
    lines: ['NAME==abc', 'NAME_2=def=ghi', 'NAME_3=jkl='],
    pairs: { NAME: '=abc', NAME_2: 'def=ghi', NAME_3: 'jkl=' },
  },
  {
    name: 'several lines',
    lines: MULTI_LINE,
    pairs: { NAME: 'line one\nline two\nline three' },
  },
  { name: 'no line between delimiters', lines: ['NAME<<EOF', 'EOF'], pairs: { NAME: '' } },
  {
    name: 'empty lines around several lines',
    lines: ['', 'NAME<<EOF', 'hello', 'world', 'EOF', '', 'B<<EOF', 'HELLO', 'AGAIN', 'EOF', ''],
    pairs: { NAME: 'hello\nworld', B: 'HELLO\nAGAIN' },
  },
  {
    name: 'odd delimiters and lines like delimiters',
    lines: [
      'A<<=EOF',
      'hello',
      'one',
      '=EOF',
      'B<<<EOF',
      'hello',
      'two',
      '<EOF',
      'C<<EOF',
      'hello',
      '',
      'three',
      '',
      'EOF',
      'D<<EOF',
      'hello=four',
      'EOF',
      'E<<EOF',
      ' EOF',
      'EOF',
    ],
    pairs: {
      A: 'hello\none',
      B: 'hello\ntwo',
      C: 'hello\n\nthree\n',
      D: 'hello=four',
      E: ' EOF',
    },
  },
  {
    name: 'spaces instead of line breaks',
    lines: MULTI_LINE,
    joiner: ' ',
    problem: 'Matching delimiter not found',
  },
  {
    name: 'no line break before the delimiter',
    lines: ['NAME<<EOF', 'line one\n line two\n line three', 'EOF'],
    joiner: ' ',
    problem: 'EOF marker missing new line.',
  },
  {
    name: 'line breaks of another system stay in the value',
    lines: MULTI_LINE,
    joiner: '\r\n',
    pairs: { NAME: 'line one\r\nline two\r\nline three' },
  },
];

describe.each(['GITHUB_OUTPUT', 'GITHUB_STATE', 'GITHUB_ENV'])('%s', (variable) => {
  test.each(SHARED_CASES)('$name', async ({ lines, joiner = '\n', pairs, problem }) => {
    const text = await readCommandFile(fileWith(`\uFEFF${lines.join(joiner)}`));
    const parse = (): unknown =>
      Object.fromEntries(
        variable === 'GITHUB_ENV' ? parseEnvFile(text, asIs).values : parsePairs(text, asIs),
      );
    if (problem === undefined) {
      expect(parse()).toEqual(pairs);
    } else {
      expect(parse).toThrow(problem);
    }
  });

  test.each(['no-such-folder/file', 'no-such-file'])('%s: nothing', async (name) => {
    const text = await readCommandFile(join(folder, name));
    expect(parsePairs(text, asIs).size).toBe(0);
  });
});

describe('GITHUB_ENV', () => {
  test.each([['NODE_OPTIONS=asdf'], ['NODE_OPTIONS<<EOF\nasdf\nEOF'], ['node_options=asdf']])(
    '%j is refused',
    (text) => {
      const { values, refused } = parseEnvFile(text, asIs);
      expect(values.size).toBe(0);
      expect(refused).toHaveLength(1);
    },
  );

  test('what loads code is set, and told', () => {
    const change = parseEnvFile('LD_PRELOAD=/a.so\nA=b\nDYLD_LIBRARY_PATH=/x', asIs);
    expect([...change.values.keys()]).toEqual(['LD_PRELOAD', 'A', 'DYLD_LIBRARY_PATH']);
    expect(change.suspicious).toEqual(['LD_PRELOAD', 'DYLD_LIBRARY_PATH']);
  });
});

describe('parsePairs', () => {
  test.each([
    [
      'A=1\nno separator',
      "Invalid format 'no separator'. Line 2: it is neither name=value nor name<<delimiter",
    ],
    [
      '=value',
      "Invalid format '=value'. Name must not be empty. Line 1: nothing stands in front of its sign",
    ],
    ['<<EOF\nx\nEOF', "Invalid format '<<EOF'. Name must not be empty. Line 1: "],
    ['A<<', "Invalid format 'A<<'. Delimiter must not be empty. Line 1: nothing follows its <<"],
    ['A=1\n\nB', 'Line 3:'],
    [
      'A<<EOF\ntext',
      "EOF marker missing new line. Line 1: the value of 'A' begins there, and ends without a line break before EOF",
    ],
    [
      'B=1\nA<<EOF\ntext\n',
      "Matching delimiter not found 'EOF'. Line 2: the value of 'A' begins there, and no line after it is EOF alone",
    ],
    [
      "notes<<'EOF'\nx\nEOF\n",
      "Matching delimiter not found ''EOF''. Line 1: the value of 'notes' begins there, and no line after it is 'EOF' alone; unlike in a shell, quotes are a part of the delimiter, 'EOF': leave them out",
    ],
    ['A<<EOF\nx\n  EOF\n', 'is EOF alone; line 3 has it with other blanks around it'],
    [
      `${'a'.repeat(100)} b`,
      `Invalid format '${'a'.repeat(80)}…'. Line 1: it is neither name=value nor name<<delimiter`,
    ],
  ])('%j', (text, problem) => {
    expect(() => parsePairs(text, asIs)).toThrow(problem);
    expect(() => parsePairs(text, asIs)).toThrow(
      expect.objectContaining({ reason: 'INVALID_VALUE' }),
    );
  });

  test.each(['word SECRET-', 'SECRET-<<EOF\nx\n', 'A<<SECRET-\nx\n', 'SECRET-<<EOF\nx'])(
    'a secret stays hidden, where the text is cut in its middle, too: %j',
    (text) => {
      const secret = `SECRET-${'x'.repeat(200)}`;
      const masker = createMasker();
      masker.add(secret);
      const parse = (): unknown =>
        parsePairs(text.replace('SECRET-', secret), (part) => masker.mask(part));
      expect(parse).toThrow('***');
      expect(parse).not.toThrow('SECRET');
    },
  );

  test('lines are compared with a long delimiter in the time that they are long', () => {
    const blanks = ' '.repeat(500_000);
    expect(() => parsePairs(`A<<${blanks}E\n${'\n'.repeat(500_000)}`, asIs)).toThrow(
      /Matching delimiter not found/,
    );
  });

  test('a later pair wins; CRLF ends lines; the last line needs no end', () => {
    expect([...parsePairs('A=1\r\nB=2\r\nA=3', asIs)]).toEqual([
      ['A', '3'],
      ['B', '2'],
    ]);
  });

  test('any value comes back through a delimiter of its own', () => {
    const text = fc.array(fc.constantFrom('a', '=', '<', '\n', 'EOF', ' '), {
      maxLength: 20,
      size: 'max',
    });
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (values) => {
        const texts = values.map((parts) => parts.join(''));
        const file = texts.map((value, index) => `N${index}<<D_${index}\n${value}\nD_${index}\n`);
        expect([...parsePairs(file.join(''), asIs).values()]).toEqual(texts);
      }),
    );
  });
});

describe('GITHUB_PATH', () => {
  test('a folder a line, in any form of line end', () => {
    expect(parsePathFile('\uFEFF/a\n\n/b c\r\n/d')).toEqual(['/a', '/b c', '/d']);
  });
});

describe('readCommandFile', () => {
  test.each([
    ['UTF-8', Buffer.from('A=é€')],
    ['UTF-8 with mark', Buffer.from('\uFEFFA=é€')],
    ['UTF-16 LE', Buffer.from('\uFEFFA=é€', 'utf16le')],
    ['UTF-16 BE', Buffer.from('\uFEFFA=é€', 'utf16le').swap16()],
  ])('%s', async (_, bytes) => {
    expect(await readCommandFile(fileWith(bytes))).toBe('A=é€');
  });

  test('up to 1 MiB', async () => {
    expect(await readCommandFile(fileWith(Buffer.alloc(1_048_576, 'a')))).toHaveLength(1_048_576);
    await expect(readCommandFile(fileWith(Buffer.alloc(1_048_577, 'a')))).rejects.toMatchObject({
      reason: 'RESULT_TOO_LARGE',
      metadata: { bytes: '1048577' },
    });
  });

  test('another trouble than a missing file is an error', async () => {
    await expect(readCommandFile(folder)).rejects.toMatchObject({ reason: 'INVALID_VALUE' });
  });
});

/** The cases of the official runner: CreateStepSummaryCommandL0.cs (MIT). */
describe('GITHUB_STEP_SUMMARY', () => {
  const summary = async (path: string): Promise<string> =>
    maskSummary(await readCommandFile(path), createMasker());

  test.each([
    ['a folder that does not exist', 'no-such-folder/file'],
    ['a file that does not exist', 'no-such-file'],
  ])('%s: nothing', async (_, name) => {
    expect(await summary(join(folder, name))).toBe('');
  });

  test('an empty file: nothing', async () => {
    expect(await summary(fileWith(''))).toBe('');
  });

  test('a file above 1 MiB: an error', async () => {
    await expect(summary(fileWith(Buffer.alloc(1_048_577)))).rejects.toMatchObject({
      reason: 'RESULT_TOO_LARGE',
    });
  });

  test('Markdown as it is', async () => {
    const text = '# This is some markdown content\n\n## This is more markdown content';
    expect(await summary(fileWith(`\uFEFF${text}`))).toBe(text);
  });

  test('secrets are hidden, on one line or over several', () => {
    const masker = createMasker();
    masker.add('ThisIsMySecretPassword!');
    masker.add('ghs_verysecuretoken');
    masker.add('first half\nsecond half');
    const text =
      '# Password=ThisIsMySecretPassword!\n\n# TOKEN ghs_verysecuretoken\nfirst half\nsecond half\n';
    expect(maskSummary(text, masker)).toBe('# Password=***\n\n# TOKEN ***\n***\n***\n');
  });
});
