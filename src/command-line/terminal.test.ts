import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readServerEvents } from './server-events.ts';
import { Terminal } from './terminal.ts';

class Screen extends PassThrough {
  readonly isTTY: boolean;
  readonly columns = 40;
  text = '';

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
    this.on('data', (chunk: Buffer) => {
      this.text += chunk.toString();
    });
  }
}

describe('a terminal', () => {
  test.each([
    [true, {}, true],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [true, { TERM: 'dumb' }, false],
    [false, {}, false],
    [false, { FORCE_COLOR: '1' }, true],
    [false, { FORCE_COLOR: '0' }, false],
    [true, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
  ])('isTTY %s with %j has colours: %s', (isTTY, environment, expected) => {
    const terminal = new Terminal(new Screen(isTTY), environment);
    expect(terminal.hasColors).toBe(expected);
    expect(terminal.paint('x', 'red')).toBe(expected ? '\u001b[31mx\u001b[0m' : 'x');
  });

  test('no text of others moves the cursor, sets a title or answers into the keyboard', () => {
    const terminal = new Terminal(new Screen(true), {});
    const piece = fc.constantFrom(
      '\u001b',
      '[',
      ']',
      '2J',
      '31m',
      'm',
      ';',
      '0;t\u0007',
      '\u009b',
      'P',
      '\\',
      '\r',
      '\n',
      '\b',
      'x',
      '?',
      '>4',
      ' ',
    );
    for (const hidden of ['\u001b[ m', '\u001b[>4;2m', '\u001b[?4m', '\u001b[ 1m']) {
      expect(terminal.foreign(`a${hidden}b`)).not.toContain(hidden);
    }
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20, size: 'max' }), (pieces) => {
        const shown = terminal.foreign(pieces.join(''));
        const rest = shown.replaceAll(new RegExp(String.raw`${'\u001b'}\[[0-9;:]*m`, 'g'), '');
        const controls = Array.from(rest).filter((character) => {
          const code = character.codePointAt(0) ?? 0;
          return (code < 32 && character !== '\t') || (code >= 127 && code < 160);
        });
        expect(controls).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('lines stand above the status line, which has one line and is gone in the end', async () => {
    const screen = new Screen(true);
    const terminal = new Terminal(screen, { NO_COLOR: '1' });
    terminal.status('working '.repeat(10));
    terminal.line('one');
    await Promise.resolve();
    terminal.line('two');
    terminal.line('three');
    terminal.status('');
    const clear = '\r\u001b[2K';
    const status = `${'working '.repeat(10).slice(0, 38)}…`;
    expect(screen.text).toBe(
      `${clear}${status}${clear}one\n${status}${clear}two\nthree\n${status}${clear}`,
    );
  });

  test('what is no terminal gets lines alone', async () => {
    const screen = new Screen(false);
    const terminal = new Terminal(screen, {});
    terminal.status('working');
    terminal.line('one');
    await Promise.resolve();
    expect(screen.text).toBe('one\n');
  });
});

test('events are found wherever the pieces end', async () => {
  const text =
    'event: ping\ndata: {}\n\nid: a-1\nevent: step.log\ndata: {"line":"é"}\n\n: comment\n\nid: cut';
  const bytes = new TextEncoder().encode(text);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: bytes.length })), async (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const parts = places.slice(1).map((end, index) => bytes.slice(places[index], end));
      const found = [];
      for await (const event of readServerEvents(new Response(ReadableStream.from(parts)))) {
        found.push(event);
      }
      expect(found).toEqual([
        { id: '', event: 'ping', data: '{}' },
        { id: 'a-1', event: 'step.log', data: '{"line":"é"}' },
        { id: '', event: 'message', data: '' },
      ]);
    }),
    { numRuns: 50 },
  );
});
