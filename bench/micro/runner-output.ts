// Yields nanoseconds per line that a step prints: hiding 20 secrets in each, and all the way from bytes
// to masked lines of the log.
// Run: npm run bench -- runner-mask runner-lines
import { createHash } from 'node:crypto';
import { createCommandSession } from '../../src/runner/step-output/command-session.ts';
import { createLineSplitter } from '../../src/runner/step-output/line-splitter.ts';
import { createMasker, type Masker } from '../../src/runner/step-output/masker.ts';
import { createMatcherSet } from '../../src/runner/step-output/matcher-set.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const LINES = 10_000;
const CHUNK_BYTES = 64 * 1024;

function maskerOfSecrets(): Masker {
  const masker = createMasker();
  for (const seed of listOf(20, String)) {
    masker.add(createHash('sha256').update(seed).digest('base64').slice(0, 20));
  }
  return masker;
}

const linesOfBuild = (): readonly string[] =>
  listOf(LINES, (i) => `[${i}] compiling module src/foo/bar-${i % 977}.ts done in ${i % 13} ms`);

export const runnerMask: MicroBench = {
  name: 'runner-mask',
  yields: 'ns per line masked, 20 secrets in all their encodings, none in it',
  operations: LINES,
  prepare() {
    const masker = maskerOfSecrets();
    const lines = linesOfBuild();
    const secret = createHash('sha256').update('3').digest('base64').slice(0, 20);
    mustHold(masker.mask(`a ${secret} b`) === 'a *** b', 'secrets are hidden');
    return () => {
      let characters = 0;
      for (const line of lines) characters += masker.mask(line).length;
      return characters;
    };
  },
};

export const runnerLines: MicroBench = {
  name: 'runner-lines',
  yields: 'ns per line from bytes through commands and masks, in chunks of 64 KiB',
  operations: LINES,
  prepare() {
    const masker = maskerOfSecrets();
    const bytes = Buffer.from(`${linesOfBuild().join('\n')}\n`);
    const work = (): number => {
      let count = 0;
      const session = createCommandSession({
        masker,
        matchers: createMatcherSet(),
        repository: { workspaceDir: '/' },
        isDebug: false,
        allowsUnsecureCommands: false,
        allowsUnsecureTokens: false,
      });
      const splitter = createLineSplitter({
        lineBytesMax: CHUNK_BYTES,
        masker,
        onLines(lines, block) {
          count += session.handle(lines, block).lines.length;
          return undefined;
        },
      });
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
        void splitter.push(bytes.subarray(at, at + CHUNK_BYTES));
      }
      splitter.end();
      return count;
    };
    mustHold(work() === LINES, 'every line arrives');
    return work;
  },
};
