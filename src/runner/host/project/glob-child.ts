import { create } from '@actions/glob';
import type { GlobAnswer } from './glob-files.ts';

// A program of its own: the package looks from the working folder and prints what it does.
const [root = '', patterns = '', options = '{}'] = process.argv.slice(2);
process.chdir(root);
const parsed = JSON.parse(options) as Parameters<typeof create>[1];

/** The first pattern that the package refuses by itself, and its reason. */
async function refusedPattern(): Promise<GlobAnswer> {
  for (const pattern of patterns.split('\n')) {
    try {
      await create(pattern, parsed);
    } catch (error) {
      return { pattern, reason: error instanceof Error ? error.message : '' };
    }
  }
  return { pattern: patterns, reason: '' };
}

let answer: GlobAnswer;
try {
  const globber = await create(patterns, parsed);
  answer = { files: await globber.glob(), searchPaths: globber.getSearchPaths() };
} catch {
  answer = await refusedPattern();
}
process.send?.(answer);
process.disconnect();
