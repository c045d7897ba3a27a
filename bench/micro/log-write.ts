// Yields nanoseconds per line of a step's log handed to the system, in batches as a pipe delivers them.
// Run: npm run bench -- log-write
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLogWriter } from '../../src/runner/storage/log-writer.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const LINES = 50_000;
/** Lines of 40 characters in 64 KiB, what one read of a pipe gives. */
const BATCH = 1_600;

export const logWrite: MicroBench = {
  name: 'log-write',
  yields: 'ns per line of 40 characters written to a log',
  operations: LINES,
  prepare() {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
    const path = join(directory, 'logs', '1.log');
    const lines = listOf(BATCH, (i) => String(i).padEnd(40, '.'));
    const write = (): void => {
      const log = openLogWriter(path);
      let left = LINES;
      for (; left >= BATCH; left -= BATCH) void log.write(lines);
      void log.write(lines.slice(0, left));
      log.close();
    };
    write();
    mustHold(readFileSync(path).length === LINES * 41, 'each line is in the file');
    return write;
  },
};
