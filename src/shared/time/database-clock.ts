import { assert } from '../assert.ts';
import { type Clock, systemClock } from './clock.ts';

/*
 * SPEC of the time that decides expiry. It is the database's, since rows are given their expiry with
 * it in mind wherever they are written; a machine's own wall clock takes no part in it.
 *
 * I1  Time is the monotonic clock of the machine, which all threads share, plus an offset that one
 *     thread estimates: a wall clock that is wrong, or is set, changes nothing.
 *     [database-clock.test.ts]
 * I2  The offset is within an interval that every sample confirmed: a sample states that the
 *     database's clock showed `databaseMs` at some moment between `sentMs` and `receivedMs`.
 *     Between samples the interval grows by what clocks drift; samples are cut with it (M.
 *     Marzullo, 1984). [database-clock.test.ts]
 * I3  A sample that the interval contradicts means that the database's clock was set, or is
 *     another's since a failover: it is believed alone. [database-clock.test.ts]
 * I4  Time never goes back, on any thread: it pauses until the database's has come as far.
 *     [database-clock.test.ts]
 */

/** Drift between two clocks: twice the 500 ppm by which NTP slews (RFC 5905), the most of a sound clock. */
const DRIFT = 0.001;

/** Slots of the shared memory, 8 bytes each; the first holds the version as its lower half. */
const VERSION = 0;
const OFFSET = 1;
const MIN = 2;
const SLOTS = 3;

/** Wait between two polls of values that are being replaced, by a thread that has no earlier ones. */
const REPLACING_MS = 1;

/** Milliseconds of this thread's `performance.now()` to the monotonic clock of the machine. */
const THREAD_ORIGIN_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Memory by which the threads of a process share one estimate: given to workers as it is. */
export function createClockMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS * Float64Array.BYTES_PER_ELEMENT);
}

/**
 * The database's time on this thread. Until there is a sample it is the machine's own, by which nothing
 * is answered, since an instance is not ready before.
 */
export class DatabaseClock implements Clock {
  readonly #base: Clock;
  readonly #originMs: number;
  readonly #versions: Int32Array;
  readonly #values: Float64Array;
  /** Version of the values that were read last: 0 is none yet. */
  #version = 0;
  #offsetMs = 0;
  #minMs = -Infinity;

  /** `base` and `originMs`, which makes its monotonic clock that of the machine, are given in tests. */
  constructor(memory: SharedArrayBuffer, base: Clock = systemClock, originMs = THREAD_ORIGIN_MS) {
    this.#base = base;
    this.#originMs = originMs;
    this.#versions = new Int32Array(memory);
    this.#values = new Float64Array(memory);
  }

  /** Hot: an atomic load and a reading of the clock. */
  nowMs(): number {
    const version = Atomics.load(this.#versions, VERSION);
    if (version !== this.#version) this.#read(version);
    if (this.#version === 0) return this.#base.nowMs();
    const nowMs = Math.max(this.#originMs + this.#base.monotonicMs() + this.#offsetMs, this.#minMs);
    this.#minMs = nowMs;
    return nowMs;
  }

  /** While the two values are being replaced (the version is odd, or changes) those from before will do; without such it is waited for. */
  #read(seen: number): void {
    let version = seen;
    while (!this.#readVersion(version) && this.#version === 0) {
      // The thread that replaces them may have lost its processor meanwhile.
      Atomics.wait(this.#versions, VERSION, version, REPLACING_MS);
      version = Atomics.load(this.#versions, VERSION);
    }
  }

  /** Whether the values were those of `version` for as long as it took. */
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

/** Estimates the database's time for all threads; one of a process. */
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
  /** When the interval was that, on the monotonic clock. */
  #atMs = 0;
  #steps = 0;

  constructor(base: Clock = systemClock, originMs = THREAD_ORIGIN_MS) {
    this.#base = base;
    this.#originMs = originMs;
    this.clock = new DatabaseClock(this.memory, base, originMs);
  }

  /**
   * A sample: between these two moments of `performance.now()`, from before a query was sent until
   * after its answer came, the database's clock showed `databaseMs` (milliseconds since 1970). A
   * query that takes long proves little, and does no harm.
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

  /** How far from the database's the time may be, either way. Infinity before the first sample. */
  get uncertaintyMs(): number {
    return (this.#highMs - this.#lowMs) / 2 + this.#driftMs(this.#base.monotonicMs());
  }

  /** Lead of the database's clock over this machine's wall clock. 0 before the first sample. */
  get wallOffsetMs(): number {
    return this.#isSet ? this.#estimateMs() - this.#base.nowMs() : 0;
  }

  /** How long time pauses, since it must not go back to the database's time. */
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
    // Every time that any thread was given until now is at or below it, except for one given during
    // these lines, which that thread remembers itself.
    const minMs = this.#isSet ? this.clock.nowMs() : -Infinity;
    Atomics.add(this.#versions, VERSION, 1);
    this.#values[OFFSET] = offsetMs;
    this.#values[MIN] = minMs;
    Atomics.add(this.#versions, VERSION, 1);
  }
}
