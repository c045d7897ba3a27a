import { AppError } from '../../shared/app-error.ts';
/*
 * Chunks of requests flow into this folder, whole bodies out of it. `body-intake` gathers one, `body-budget` counts
 * the bytes of all, `body-deadlines` ends slow ones, `body-pool` provides memory. `streamed-body` passes one on by
 * whole units, which `unit-ends` finds. `gunzip-*` decompress within the same bounds.
 */
import type { SharedReason } from '../../shared/reasons.ts';
import { type BodyBudget, type BodyHold, type HeldBody } from './body-budget.ts';
import type { BodyLease, BodyPool } from './body-pool.ts';
import { PieceGatherer } from './piece-gatherer.ts';

type BodyIntakeOptions = {
  readonly bytesMax: number;
  /** Bytes beyond the limit that are read and thrown away, so that the answer can be delivered. */
  readonly discardBytesMax: number;
  readonly budget: BodyBudget;
  readonly owner: string;
  /** Pool of memory for long bodies of a known length; undefined: it is not reused. */
  readonly pool: BodyPool | undefined;
  /** Value of the header content-length; 0 where it is absent. */
  readonly declaredBytes: number;
  /** Callback for a body that was evicted to free memory for others; runs within a call of another body. */
  readonly onCut: (error: AppError) => void;
};

/** Part of a declared body, one half, after which memory for the whole is leased. */
const DECLARED_PART = 2;
/** Pieces that a body may have in addition to one per 16 bytes: a piece costs as much as some hundred bytes. */
const PIECES_SPARE = 1_024;
const BYTES_A_PIECE = 16;

/**
 * Gathers one body that is wanted whole, and comes in several pieces or is long. Results of `add`: `more`, the body
 * goes on; `whole`, `takeWhole` has it; `refused`, `refusal` has the error, null for a body longer than `bytesMax`.
 */
export class BodyIntake implements HeldBody {
  refusal: AppError | null = null;
  readonly #options: BodyIntakeOptions;
  readonly #hold: BodyHold;
  readonly #gatherer = new PieceGatherer();
  #lease: BodyLease | null = null;
  #state: 'gathering' | 'discarding' | 'over' = 'gathering';
  #size = 0;
  #pieces = 0;

  constructor(options: BodyIntakeOptions) {
    this.#options = options;
    this.#hold = options.budget.open(options.owner, this);
  }

  /** Adds a chunk, and copies what it keeps of it. Does nothing once the body was whole or refused. */
  add(chunk: Uint8Array, isLast: boolean): 'more' | 'whole' | 'refused' {
    if (this.#state === 'over') return 'more';
    this.#size += chunk.length;
    this.#pieces += 1;
    const { bytesMax, discardBytesMax } = this.#options;
    if (this.#state === 'gathering' && this.#size > bytesMax) this.#discard(null);
    if (this.#pieces > PIECES_SPARE + this.#size / BYTES_A_PIECE) {
      this.#options.budget.counts.refused.crumbs += 1;
      this.#discard(tinyFragments());
      return this.#refused();
    }
    if (this.#state === 'gathering') this.#append(chunk, isLast);
    if (this.#state === 'discarding') {
      return isLast || this.#size > bytesMax + discardBytesMax ? this.#refused() : 'more';
    }
    if (!isLast) return 'more';
    this.#state = 'over';
    return 'whole';
  }

  /** Takes the whole body, once. Its memory stays counted until `release`. */
  takeWhole(): { readonly bytes: Uint8Array; readonly lease: BodyLease | null } {
    const lease = this.#lease;
    this.#lease = null;
    if (lease !== null) return { bytes: lease.bytes, lease };
    return { bytes: this.#gatherer.consume(this.#size), lease: null };
  }

  /** Copies what has arrived to `whole`, which must be long enough. It stays counted until `release`. */
  copyTo(whole: Uint8Array): void {
    this.#state = 'over';
    this.#hold.resize(this.#gatherer.capacity, false);
    this.#gatherer.moveTo(whole);
  }

  /** Counts against `owner` from now on. Errors: BODY_MEMORY_EXHAUSTED; nothing is held then. */
  moveTo(owner: string): AppError | null {
    const full = this.#hold.moveTo(owner);
    if (full !== null) this.#drop();
    return full;
  }

  evict(error: AppError): void {
    this.#drop();
    this.#options.onCut(error);
  }

  /** Releases what is counted and gathered, when the call is over. Idempotent. */
  release(): void {
    this.#hold.release();
    this.#gatherer.clear();
    this.#state = 'over';
  }

  #append(chunk: Uint8Array, isLast: boolean): void {
    if (!isLast) this.#leaseWhole();
    const before = this.#size - chunk.length;
    if (this.#lease !== null && this.#size <= this.#lease.bytes.length) {
      this.#lease.bytes.set(chunk, before);
    } else this.#gatherer.append(chunk);
    const leased = this.#lease?.bytes.buffer.byteLength ?? 0;
    const full = this.#hold.resize(this.#gatherer.capacity + leased, !isLast);
    if (full !== null) this.#discard(full);
  }

  /**
   * Leases memory for the whole of a declared body once half of it has arrived: a client that only declares takes
   * none.
   */
  #leaseWhole(): void {
    const { pool, declaredBytes, bytesMax } = this.#options;
    if (this.#lease !== null || pool === undefined || declaredBytes > bytesMax) return;
    if (this.#size > declaredBytes || this.#size * DECLARED_PART < declaredBytes) return;
    this.#lease = pool.acquireLarge(declaredBytes);
    this.#gatherer.moveTo(this.#lease.bytes);
  }

  #discard(refusal: AppError | null): void {
    this.refusal = refusal;
    this.#state = 'discarding';
    this.#hold.release();
    this.#gatherer.clear();
    this.#lease?.release();
    this.#lease = null;
  }

  #refused(): 'refused' {
    this.#state = 'over';
    return 'refused';
  }

  #drop(): void {
    this.#discard(null);
    this.#state = 'over';
  }
}

function tinyFragments(): AppError {
  return new AppError<SharedReason>(
    'BODY_IN_CRUMBS',
    `the body comes in pieces that are shorter than ${BYTES_A_PIECE} bytes on the average`,
    { limit_bytes_a_piece: String(BYTES_A_PIECE) },
  );
}
