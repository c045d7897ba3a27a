import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { SopsDocument } from './sops-document.ts';

test('the outline needs no key and shows no value', () => {
  const document = SopsDocument.create(randomBytes(32), []);
  document.set(['here', 'A'], 'hunter2');
  document.set(['here', 'EMPTY'], '');
  document.set(['here', 'PLAIN'], 'in clear');
  const sealed = document.sealed(86_400_000).replace(/("PLAIN": )"ENC[^"]*"/, '$1"in clear"');
  const { leaves, lastModifiedMs } = SopsDocument.outline(sealed);
  expect(lastModifiedMs).toBe(86_400_000);
  expect(leaves.map(({ path, isEncrypted, text }) => [path.join('.'), isEncrypted, text])).toEqual([
    ['here.A', true, '?'],
    ['here.EMPTY', true, ''],
    ['here.PLAIN', false, '?'],
  ]);
  const rule = '"encrypted_regex": "("';
  const ruled = sealed.replace('"unencrypted_suffix": "_unencrypted"', rule);
  expect(ruled).toContain(rule);
  // An expression of a file that nobody verified is not looked at.
  expect(SopsDocument.outline(ruled).leaves).toEqual(leaves);
  for (const [wrong, problem] of [
    ['[]', 'no object'],
    ['{}', 'no sops metadata'],
    ['{"sops":1}', 'no sops metadata'],
    ['{"sops":{"lastmodified":"soon"}}', 'no date'],
    ['{', 'a string is missing'],
  ] as const) {
    expect(() => SopsDocument.outline(wrong)).toThrow(problem);
  }
});
