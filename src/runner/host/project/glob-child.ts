import { create } from '@actions/glob';
import type { GlobAnswer } from './glob-files.ts';

// A program of its own: the package looks from the working folder and prints what it does.
const [root = '', patterns = '', options = '{}'] = process.argv.slice(2);
process.chdir(root);
const parsed = JSON.parse(options) as Parameters<typeof create>[1];

/** The first pattern that the package refuses by itself; else why they could not be searched for. */
async function refusedPattern(failure: unknown): Promise<GlobAnswer> {
  for (const pattern of patterns.split('\n')) {
    try {
      await create(pattern, parsed);
    } catch (error) {
      return { pattern, reason: error instanceof Error ? error.message : '' };
    }
  }
  return { pattern: patterns, reason: failure instanceof Error ? failure.message : '' };
}

let answer: GlobAnswer;
try {
  const globber = await create(patterns, parsed);
  answer = { files: await globber.glob(), searchPaths: globber.getSearchPaths() };
} catch (error) {
  answer = await refusedPattern(error);
}
process.send?.(answer);
process.disconnect();
