import { expect, test } from 'vitest';
import { mustRead } from '../../../test/runner/support/workflow-reading.ts';
import type { SecretSource } from '../model/ports.ts';
import { RunMasks } from './run-masks.ts';

test('a run hides what its secrets are now and what they were, and keeps what it added', async () => {
  const text = 'on: push\njobs: { a: { runs-on: x, steps: [{ run: "${{ secrets.kept }}" }] } }\n';
  const stored = ['first-value'];
  const secrets: SecretSource = {
    secretsFor: () => Promise.resolve({}),
    variablesFor: () => Promise.resolve({}),
    environments: () => Promise.resolve([]),
    masksFor: (_environment, names) =>
      Promise.resolve(names?.join() === 'KEPT' ? stored : ['unexpected names']),
  };
  const masks = new RunMasks(secrets, await mustRead(text), {
    KEPT: 'given-value',
    OTHER: 'not-named',
  });
  const before = await masks.masker();
  expect(before.mask('first-value given-value not-named')).toBe('*** *** not-named');
  stored[0] = 'second-value';
  masks.add(['made-of-it']);
  const after = await masks.masker();
  expect(after.mask('first-value second-value made-of-it')).toBe('*** *** ***');
  expect(after).toBe(before);
});
