/*
 * For tests: a machine whose wall clock is wrong. Loaded before the program, into each of its threads:
 *
 *   NODE_OPTIONS="--import=<this file>" TEST_CLOCK_SKEW_FILE=<path> node src/main.ts
 *
 * The file holds how far the clock is ahead, in milliseconds (negative: behind), and is read again ten times a second,
 * so that a test sets the clock while the program runs. What the program reads of the wall clock goes
 * by it (`Date.now`, `new Date`); the monotonic clock and timers do not, as on a machine whose clock
 * is set. The program itself knows nothing of it: there is no setting that skews its clock.
 */
import { readFileSync } from 'node:fs';

const path = process.env['TEST_CLOCK_SKEW_FILE'];
if (path === undefined || path === '') throw new Error('TEST_CLOCK_SKEW_FILE is not set');

const RealDate = Date;
const realNow = Date.now.bind(Date);
let skewMs = 0;

function readSkew(file: string): void {
  const text = readFileSync(file, 'utf8').trim();
  // The moment of writing may show an empty file.
  if (/^-?\d+$/.test(text)) skewMs = Number(text);
}

readSkew(path);
setInterval(readSkew, 100, path).unref();

class SkewedDate extends RealDate {
  constructor(...args: readonly unknown[]) {
    // Any other form names a moment, which stays what it is.
    if (args.length === 0) super(realNow() + skewMs);
    else super(...(args as [number]));
  }

  static override now(): number {
    return realNow() + skewMs;
  }
}

globalThis.Date = SkewedDate as DateConstructor;
