/* Links between documents lead to a file, and to a heading in it. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { expect, test } from 'vitest';
import { DOCUMENTS } from './support/documents.ts';

/** The anchors of a document's headings, as code hosts make them. */
function anchorsOf(text: string): readonly string[] {
  const prose = text.replaceAll(/^ *```[^]*?^ *```/gm, '');
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Links of a document that lead nowhere. */
function brokenLinks(path: string, text: string): readonly string[] {
  const prose = text.replaceAll(/^ *```[^]*?^ *```/gm, '').replaceAll(/`[^`\n]*`/g, '');
  const links = [...prose.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
  return links.flatMap(([link, file = '', anchor]) => {
    const target = file === '' ? path : join(dirname(path), file);
    if (!existsSync(target)) return [`${path}: ${link}`];
    if (anchor === undefined || statSync(target).isDirectory()) return [];
    const anchors = anchorsOf(target === path ? text : readFileSync(target, 'utf8'));
    return anchors.includes(anchor) ? [] : [`${path}: ${link}`];
  });
}

test.each(DOCUMENTS)('links of %s lead somewhere', (path) => {
  expect(brokenLinks(path, readFileSync(path, 'utf8'))).toEqual([]);
});

test('a missing file and a missing heading are found, code is not read', () => {
  const text = '# A b, c\n[x](none.md) [y](#a-b-c) [z](#nothing) `[q](other.md)`\n';
  expect(brokenLinks('README.md', text)).toEqual([
    'README.md: ](none.md)',
    'README.md: ](#nothing)',
  ]);
});
