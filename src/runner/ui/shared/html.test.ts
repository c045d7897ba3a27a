import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../../../../test/support/any-text.ts';
import { styledText } from './ansi.ts';
import { html, webAddress } from './html.ts';
import { LogSections } from './log-sections.ts';
import { markdown } from './markdown.ts';

describe('html', () => {
  test('values are escaped, templates in templates are not escaped twice', () => {
    const inner = html`<b title="${'"\'<&>'}">${'<i>'}</b>`;
    expect(html`${[inner, null, undefined, false, 0, 'x']}`.text).toBe(
      '<b title="&quot;&#39;&lt;&amp;&gt;">&lt;i&gt;</b>0x',
    );
  });

  test('no text leaves its place', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (text) => {
        const inside = html`<p a="${text}">${text}</p>`.text;
        expect(inside.match(/[<>"]/g)?.join('')).toBe('<""><>');
        expect(inside).not.toMatch(/&(?!(?:amp|lt|gt|quot|#39);)/);
      }),
    );
  });

  test('links lead to the web alone', () => {
    const wrong = [
      'javascript:alert(1)',
      'JAVASCRIPT:1',
      'data:text/html,x',
      '//x',
      ' https://x',
      '',
      'https://a b',
    ];
    expect(wrong.map(webAddress)).toEqual(wrong.map(() => undefined));
    expect(webAddress('https://example.com/a?b#c')).toBe('https://example.com/a?b#c');
  });
});

describe('markdown', () => {
  test.each([
    ['# One\n## Two\n### Three ###', '<h3>One</h3><h4>Two</h4><h5>Three</h5>'],
    ['a\nb\n\nc', '<p>a<br />b</p><p>c</p>'],
    [
      '**b** _i_ *i* ~~s~~ `c*c*` snake_case_name',
      '<p><strong>b</strong> <em>i</em> <em>i</em> <s>s</s> <code>c*c*</code> snake_case_name</p>',
    ],
    [
      '- a\n- [x] b\n  - c',
      '<ul><li class="depth-0">a</li><li class="depth-0">☑ b</li><li class="depth-1">c</li></ul>',
    ],
    ['1. a\n2. b', '<ol><li class="depth-0">a</li><li class="depth-0">b</li></ol>'],
    ['```js\n<b>\n```\nend', '<pre><code>&lt;b&gt;</code></pre><p>end</p>'],
    ['```\nnever closed', '<pre><code>never closed</code></pre>'],
    ['> quoted\n> more', '<blockquote><p>quoted<br />more</p></blockquote>'],
    ['---', '<hr />'],
    ['<script>x</script>', '<p>&lt;script&gt;x&lt;/script&gt;</p>'],
    ['[x](javascript:alert)', '<p>[x](javascript:alert)</p>'],
    [
      '[x](https://a.b/c)',
      '<p><a href="https://a.b/c" rel="noreferrer noopener" target="_blank">x</a></p>',
    ],
  ])('%j', (source, expected) => {
    expect(compact(markdown(source).text)).toBe(compact(expected));
  });

  test('tables', () => {
    const text = compact(markdown('| a | b |\n|---|:-:|\n| 1 | \\| |').text);
    expect(text).toContain('<thead><tr><th>a</th><th>b</th></tr></thead>');
    expect(text).toContain('<td>1</td><td>|</td>');
  });

  test('nothing in it becomes markup of its own, and it always ends', () => {
    const piece = fc.constantFrom(
      '<img src=x onerror=y>',
      '"',
      '`',
      '**',
      '_',
      '[',
      '](',
      ')',
      '|',
      '\n',
      '> ',
      '- ',
      '```',
      '|-|',
      'https://x',
      '# ',
      ' ',
      '~~',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40, size: 'max' }), (pieces) => {
        const names = markdown(pieces.join('')).text.match(/<[a-z][^>\s]*/g) ?? [];
        expect(names).not.toContain('<img');
      }),
      { numRuns: 300 },
    );
  });

  test('a megabyte of marks takes no long time', () => {
    for (const mark of [
      '> > ',
      '**a ',
      '[a](',
      '|-',
      '`a',
      '*',
      '_',
      '[',
      '`',
      '~',
      '|',
      '>',
      '# ',
      '- ',
      '![](',
    ]) {
      for (const width of [1_000, 300_000]) {
        const line = mark.repeat(width / mark.length);
        const source = `${line}\n`.repeat(300_000 / width);
        expect(markdown(source).text.length, mark).toBeGreaterThan(0);
      }
    }
  });
});

describe('colours of a log', () => {
  test.each([
    ['plain', [['plain', '']]],
    [
      '\u001b[31mred\u001b[0m no',
      [
        ['red', 'fg-red'],
        [' no', ''],
      ],
    ],
    [
      '\u001b[1;92;44mx\u001b[22;39;49my',
      [
        ['x', 'fg-bright-green bg-blue bold'],
        ['y', ''],
      ],
    ],
    [
      '\u001b[38;5;9ma\u001b[38;5;21mb\u001b[38;2;0;250;250mc',
      [
        ['a', 'fg-bright-red'],
        ['b', 'fg-bright-blue'],
        ['c', 'fg-bright-cyan'],
      ],
    ],
    [
      'a\u001b]8;;javascript:x\u0007b\u001b[2Jc\u001b7d\u0000e\u001b',
      [
        ['a', ''],
        ['b', ''],
        ['c', ''],
        ['d', ''],
        ['e', ''],
      ],
    ],
  ])('%j', (line, expected) => {
    expect(styledText(line).map(({ text, classes }) => [text, classes])).toEqual(expected);
  });

  test('classes are names alone, whatever the line', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('\u001b[', '38;5;', '999', ';', 'm', '4', '"><', 'x', ':')),
        (parts) => {
          for (const { classes } of styledText(parts.join('')))
            expect(classes).toMatch(/^[a-z -]*$/);
        },
      ),
    );
  });
});

test('a log is cut into steps wherever the pieces end', () => {
  const log =
    '=== Job: a (a) ===\n--- Step 1: x [success] ---\none\n --- Step 2: fake [success] ---\n\n' +
    '--- Step 2: y [z] [in_progress] ---\n--- Step 3: w [queued] ---\n=== Job: no\ntwo\n';
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: log.length })), (cuts) => {
      const found = new Map<number, string[]>();
      const sections = new LogSections((step, lines) => {
        found.set(step, [...(found.get(step) ?? []), ...lines]);
      });
      const places = [0, ...cuts.sort((a, b) => a - b), log.length];
      places.slice(1).forEach((end, index) => sections.push(log.slice(places[index], end)));
      expect([...found]).toEqual([[1, ['one', '--- Step 2: fake [success] ---', '']]]);
    }),
  );
});

function compact(text: string): string {
  return text
    .replaceAll(/\s*\n\s*/g, '')
    .replaceAll(/\s+>/g, '>')
    .replaceAll(/>\s+</g, '><');
}
