import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { modelOfText, testFiles } from '../../src/assertions/test-files.ts';

/* The file of assertions that docs/models.md shows, against the model that it speaks of. */
const DRIVE = `
namespace group {
  relation member
}

namespace folder {
  relation viewer
}

namespace doc {
  relation parent
  relation banned
  relation viewer: (this or viewer from parent) but not banned
}
`;

test('the file of assertions in the documentation holds', () => {
  const page = readFileSync('docs/models.md', 'utf8');
  const [, section = ''] = page.split('### Files of assertions\n');
  const [, block = ''] = section.split('```yaml\n');
  const [text = ''] = block.split('```');
  expect(text).toContain('model_file: drive.gate');
  const limits = { depthMax: 256, readBudget: 10_000 };
  const model = modelOfText(DRIVE);
  const run = (file: string) =>
    testFiles(
      [{ name: 'doc', text: file }],
      () => model,
      limits,
      () => 'doc',
    );
  expect(run(text)).toEqual({ assertions: 7, failures: [] });
  // It says something: without its tuples it does not hold.
  expect(run(text.replace('@user:ann', '@user:ada')).failures.length).toBeGreaterThan(1);
});
