import { assert } from '../assert.ts';
import { type Clock, systemClock } from './clock.ts';

/*
 * SPEC of the time that decides expiry. It is the database's: rows get their expiry in terms of it,
 * wherever they are written. A machine's own wall clock takes no part in it.
 *
 * I1  Time is the monotonic clock of the machine, which all threads share, plus an offset that one
 *     thread estimates. A wall clock that is wrong, or is set, changes nothing.
 *     [database-clock.test.ts]
 * I2  The offset is within an interval that every sample confirmed. A sample states that the
 *     database's clock showed `databaseMs` at some moment between `sentMs` and `receivedMs`.
 *     Between samples the interval grows by the drift of clocks; each sample is intersected with
 *     it (M. Marzullo, 1984). [database-clock.test.ts]
 * I3  A sample that contradicts the interval means that the database's clock was set, or belongs
 *     to another server since a failover: it alone counts then. [database-clock.test.ts]
 * I4  Time never goes back, on any thread: it pauses until the database's time has caught up.
 *     [database-clock.test.ts]
 */

/**
 * Drift between two clocks: twice the 500 ppm by which NTP slews (RFC 5905), the most of a sound
 * clock.
 */
const DRIFT = 0.001;

/** Slots of the shared memory, 8 bytes each; the first holds the version as its lower half. */
const VERSION = 0;
const OFFSET = 1;
const MIN = 2;
const SLOTS = 3;

/**
 * Wait in ms between two polls of values that are being replaced, for a thread without earlier
 * ones.
 */
const REPLACING_MS = 1;

/** Milliseconds from this thread's `performance.now()` to the monotonic clock of the machine. */
const THREAD_ORIGIN_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Memory by which the threads of a process share one estimate; passed to workers as it is. */
export function createClockMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS * Float64Array.BYTES_PER_ELEMENT);
}

/**
 * The database's time on this thread. Before the first sample it is the machine's own, by which
 * nothing is answered: an instance is not ready until then.
 */
export class DatabaseClock implements Clock {
  readonly #base: Clock;
  readonly #originMs: number;
  readonly #versions: Int32Array;
  readonly #values: Float64Array;
  /** Version of the values that were read last; 0: none yet. */
  #version = 0;
  #offsetMs = 0;
  #minMs = -Infinity;

  /**
   * Tests pass `base` and `originMs`, which turns the monotonic clock of `base` into that of the
   * machine.
   */
  constructor(memory: SharedArrayBuffer, base: Clock = systemClock, originMs = THREAD_ORIGIN_MS) {
    this.#base = base;
    this.#originMs = originMs;
    this.#versions = new Int32Array(memory);
    this.#values = new Float64Array(memory);
  }

  /** Hot: an atomic load and a read of the clock. */
  nowMs(): number {
    const version = Atomics.load(this.#versions, VERSION);
    if (version !== this.#version) this.#read(version);
    if (this.#version === 0) return this.#base.nowMs();
    const nowMs = Math.max(this.#originMs + this.#base.monotonicMs() + this.#offsetMs, this.#minMs);
    this.#minMs = nowMs;
    return nowMs;
  }

  /**
   * Reads the two values. While they are being replaced (the version is odd, or changes) earlier
   * ones suffice. Without earlier ones it waits.
   */
  #read(seen: number): void {
    let version = seen;
    while (!this.#readVersion(version) && this.#version === 0) {
      // The thread that replaces them may have lost its processor meanwhile.
      Atomics.wait(this.#versions, VERSION, version, REPLACING_MS);
      version = Atomics.load(this.#versions, VERSION);
    }
  }

  /** True if the values belonged to `version` during the whole read. */
  #readVersion(version: number): boolean {
    const offsetMs = this.#values[OFFSET] as number;
    const minMs = this.#values[MIN] as number;
    if (version % 2 !== 0 || Atomics.load(this.#versions, VERSION) !== version) return false;
    this.#version = version;
    this.#offsetMs = offsetMs;
    this.#minMs = Math.max(this.#minMs, minMs);
    return true;
  }

  monotonicMs(): number {
    return this.#base.monotonicMs();
  }
}

/** Estimates the database's time for all threads; one for each process. */
export class DatabaseTime {
  readonly memory = createClockMemory();
  /** Clock of this thread. */
  readonly clock: DatabaseClock;
  readonly #base: Clock;
  readonly #originMs: number;
  readonly #versions = new Int32Array(this.memory);
  readonly #values = new Float64Array(this.memory);
  #lowMs = -Infinity;
  #highMs = Infinity;
  /** Time of the interval, on the monotonic clock. */
  #atMs = 0;
  #steps = 0;

  constructor(base: Clock = systemClock, originMs = THREAD_ORIGIN_MS) {
    this.#base = base;
    this.#originMs = originMs;
    this.clock = new DatabaseClock(this.memory, base, originMs);
  }

  /**
   * Adds a sample. At some moment between these two of `performance.now()` the database's clock
   * showed `databaseMs` (milliseconds since 1970). They enclose a query, from before it was sent
   * until after its answer came. A slow query proves little, and does no harm.
   */
  observe(sentMs: number, receivedMs: number, databaseMs: number): void {
    assert(sentMs <= receivedMs, 'an answer comes after its question');
    assert(Number.isFinite(databaseMs), 'the time of the database is a number');
    const driftMs = this.#driftMs(receivedMs);
    const low = databaseMs - this.#originMs - receivedMs;
    const high = databaseMs - this.#originMs - sentMs;
    const cutLow = Math.max(low, this.#lowMs - driftMs);
    const cutHigh = Math.min(high, this.#highMs + driftMs);
    const isConfirmed = cutLow <= cutHigh;
    if (!isConfirmed) this.#steps += 1;
    this.#lowMs = isConfirmed ? cutLow : low;
    this.#highMs = isConfirmed ? cutHigh : high;
    this.#atMs = receivedMs;
    this.#publish((this.#lowMs + this.#highMs) / 2);
  }

  /** Largest error of the time, either way, in ms. Infinity before the first sample. */
  get uncertaintyMs(): number {
    return (this.#highMs - this.#lowMs) / 2 + this.#driftMs(this.#base.monotonicMs());
  }

  /**
   * Lead of the database's clock over this machine's wall clock, in ms. 0 before the first sample.
   */
  get wallOffsetMs(): number {
    return this.#isSet ? this.#estimateMs() - this.#base.nowMs() : 0;
  }

  /** Remaining pause of time in ms, since it must not go back to the database's time. */
  get heldMs(): number {
    return this.#isSet ? Math.max(0, (this.#values[MIN] as number) - this.#estimateMs()) : 0;
  }

  /** Number of samples by which the database's clock was set. */
  get steps(): number {
    return this.#steps;
  }

  get #isSet(): boolean {
    return Atomics.load(this.#versions, VERSION) !== 0;
  }

  #estimateMs(): number {
    const machineMs = this.#originMs + this.#base.monotonicMs();
    return machineMs + (this.#values[OFFSET] as number);
  }

  #driftMs(nowMs: number): number {
    return this.#highMs === Infinity ? 0 : Math.max(0, nowMs - this.#atMs) * DRIFT;
  }

  #publish(offsetMs: number): void {
    // Bounds all times that threads have read so far. A thread that reads one during these lines
    // remembers it itself.
    const minMs = this.#isSet ? this.clock.nowMs() : -Infinity;
    Atomics.add(this.#versions, VERSION, 1);
    this.#values[OFFSET] = offsetMs;
    this.#values[MIN] = minMs;
    Atomics.add(this.#versions, VERSION, 1);
  }
}
