import { globSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readAllowedSkips } from '../scripts/allowed-skips.ts';
import { TEST_TOOLS } from '../scripts/test-tools/tool-table.ts';

describe('npm run test:tools', () => {
  test('knows where each program is had that a skip names', () => {
    const named = readAllowedSkips().map(({ needs }) => needs?.program);
    const known = new Set(TEST_TOOLS.map(({ program }) => program));
    expect(named.filter((program) => program !== undefined && !known.has(program))).toEqual([]);
  });

  test.each(TEST_TOOLS)('$program: is had in one way, and there are tests that use it', (tool) => {
    const ways = [tool.debian, tool.go, tool.crate, tool.npm].filter((way) => way !== undefined);
    expect(ways).toHaveLength(1);
    const files = globSync('test/**/*.test.ts');
    for (const part of tool.tests) expect(files.some((file) => file.includes(part))).toBe(true);
  });
});
