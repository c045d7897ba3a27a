import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { SharedReason } from '../../shared/reasons.ts';

/** Which share was used up. */
type BodyShare = 'caller' | 'unauthenticated' | 'process';

/** A body that memory is held for. */
export interface HeldBody {
  /** Frees memory: drops the bytes of the body at once, and answers it with `error`. Its hold is empty by then. */
  evict(error: AppError): void;
}

/** Body of a hold that is never evicted, since no more of it is awaited. */
export const notEvictable: HeldBody = { evict: () => undefined };

type BodyBudgetOptions = {
  /** The limit of all bodies together. */
  readonly bytesMax: number;
  /** Monotonic clock in ms; default that of the process. */
  readonly now?: (() => number) | undefined;
  /** The limit of bodies whose callers are not authenticated yet; default an eighth of `bytesMax`. */
  readonly unauthenticatedBytesMax?: number | undefined;
};

/**
 * Counts of bodies. `refused` is by the share that was used up, or `crumbs` for a body in tiny pieces.
 * `cut` is by the share that bodies were evicted for.
 */
type BodyCounts = {
  readonly refused: Record<BodyShare | 'crumbs', number>;
  readonly cut: Record<BodyShare, number>;
};

/** Parts of the budget: half of it for one caller, an eighth for all callers that are not authenticated yet. */
const CALLER_PART = 2;
const UNAUTHENTICATED_PART = 8;
/** Time in ms after which a body that has sent nothing may be evicted for others. */
const IDLE_MS = 1_000;
/** Bytes that each held body counts in addition to its own. */
const OVERHEAD_BYTES = 1_024;
/** Delay that a refused caller is advised to wait. */
const RETRY_AFTER_MS = 1_000;
/** Default of `bytesMax`, for tests and tools. */
const BYTES_DEFAULT = 256 * 1_048_576;
/** Owner of bodies whose caller is not authenticated yet. */
export const NO_OWNER = '';

type Account = {
  readonly owner: string;
  readonly bytesMax: number;
  heldBytes: number;
  /** Bodies that hold bytes and await more, the one that sent last at the end. */
  readonly awaited: Set<BodyHold>;
};

/**
 * Budget for the memory of all request bodies of a process. It counts the bytes that are held, not those declared: a
 * body grows as it arrives, and releases everything when its call ends.
 *
 * Each caller has a share across all its connections; callers that are not authenticated yet have one share together.
 * Where a share or the budget is used up, bodies that have sent nothing for a second are evicted, the longest idle
 * first. If there is none, the body that needs more is refused. A body that still sends is never evicted for another.
 * O(1) while there is space.
 *
 * B1 All bodies together never hold more than `bytesMax`, and those of one owner never more than its share.
 *    [body-budget.test.ts]
 * B2 Each byte that a body held is released exactly once, however the body ends. [body-budget.test.ts]
 */
export class BodyBudget {
  readonly bytesMax: number;
  readonly #callerBytesMax: number;
  readonly #unauthenticatedBytesMax: number;
  readonly #now: () => number;
  readonly counts: BodyCounts = {
    refused: { caller: 0, unauthenticated: 0, process: 0, crumbs: 0 },
    cut: { caller: 0, unauthenticated: 0, process: 0 },
  };
  /** Accounts of owners that hold something. */
  readonly #accounts = new Map<string, Account>();
  #heldBytes = 0;

  constructor(options: Partial<BodyBudgetOptions> = {}) {
    this.bytesMax = options.bytesMax ?? BYTES_DEFAULT;
    this.#callerBytesMax = Math.floor(this.bytesMax / CALLER_PART);
    this.#unauthenticatedBytesMax =
      options.unauthenticatedBytesMax ?? Math.floor(this.bytesMax / UNAUTHENTICATED_PART);
    this.#now = options.now ?? (() => performance.now());
  }

  /** Bytes held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Bytes that one owner holds now. */
  heldBytesOf(owner: string): number {
    return this.#accounts.get(owner)?.heldBytes ?? 0;
  }

  /**
   * Opens a hold, which is empty until its first `resize`. `owner` is the name of the caller, NO_OWNER while it is
   * not known.
   */
  open(owner: string, body: HeldBody): BodyHold {
    return new BodyHold(this, owner, body);
  }

  /** Replaces the bytes of a hold by `bytes`; on an error the hold is unchanged. */
  change(hold: BodyHold, bytes: number, isAwaited: boolean): AppError | null {
    const account = this.#accountOf(hold.owner);
    const more = bytes - hold.bytes;
    const full = more > 0 ? this.#makeSpace(account, hold, more) : null;
    if (full === null) {
      this.#count(account, more);
      hold.bytes = bytes;
      account.awaited.delete(hold);
      if (isAwaited && bytes > 0) {
        hold.sinceMs = this.#now();
        account.awaited.add(hold);
      }
    }
    this.#forget(account);
    return full;
  }

  /** Counts the bytes of a hold against another owner. On an error nothing is held. */
  move(hold: BodyHold, owner: string): AppError | null {
    if (owner === hold.owner) return null;
    const { bytes } = hold;
    const before = this.#accountOf(hold.owner);
    const isAwaited = before.awaited.delete(hold);
    this.#count(before, -bytes);
    this.#forget(before);
    hold.owner = owner;
    hold.bytes = 0;
    return bytes === 0 ? null : this.change(hold, bytes, isAwaited);
  }

  #accountOf(owner: string): Account {
    const known = this.#accounts.get(owner);
    if (known !== undefined) return known;
    const bytesMax = owner === NO_OWNER ? this.#unauthenticatedBytesMax : this.#callerBytesMax;
    const account: Account = { owner, bytesMax, heldBytes: 0, awaited: new Set() };
    this.#accounts.set(owner, account);
    return account;
  }

  #forget(account: Account): void {
    if (account.heldBytes === 0) this.#accounts.delete(account.owner);
  }

  #count(account: Account, bytes: number): void {
    account.heldBytes += bytes;
    this.#heldBytes += bytes;
    assert(account.heldBytes >= 0, 'an owner gives back no more than it held');
    assert(this.#heldBytes <= this.bytesMax, 'bodies hold no more than the budget');
  }

  #makeSpace(account: Account, hold: BodyHold, bytes: number): AppError | null {
    const share = account.owner === NO_OWNER ? 'unauthenticated' : 'caller';
    while (account.heldBytes + bytes > account.bytesMax) {
      const idle = this.#idleOf(account, hold);
      if (idle === null) return this.#refused(share, account.bytesMax);
      this.#evict(account, idle, share, account.bytesMax, account);
    }
    while (this.#heldBytes + bytes > this.bytesMax) {
      const [holder, idle] = this.#idlest(hold);
      if (holder === null || idle === null) return this.#refused('process', this.bytesMax);
      this.#evict(holder, idle, 'process', this.bytesMax, account);
    }
    return null;
  }

  /** The hold of an owner that has been idle for longest, and for at least `IDLE_MS`; null if there is none. */
  #idleOf(account: Account, but: BodyHold): BodyHold | null {
    const untilMs = this.#now() - IDLE_MS;
    for (const hold of account.awaited) {
      if (hold.sinceMs > untilMs) return null;
      if (hold !== but) return hold;
    }
    return null;
  }

  #idlest(but: BodyHold): readonly [Account | null, BodyHold | null] {
    let holder: Account | null = null;
    let found: BodyHold | null = null;
    for (const account of this.#accounts.values()) {
      const idle = this.#idleOf(account, but);
      if (idle === null || (found !== null && found.sinceMs <= idle.sinceMs)) continue;
      holder = account;
      found = idle;
    }
    return [holder, found];
  }

  #evict(
    account: Account,
    hold: BodyHold,
    share: BodyShare,
    bytesMax: number,
    inUse: Account,
  ): void {
    account.awaited.delete(hold);
    this.#count(account, -hold.bytes);
    hold.bytes = 0;
    if (account !== inUse) this.#forget(account);
    this.counts.cut[share] += 1;
    hold.body.evict(noCapacity(share, bytesMax));
  }

  #refused(share: BodyShare, bytesMax: number): AppError {
    this.counts.refused[share] += 1;
    return noCapacity(share, bytesMax);
  }
}

/** Memory that one body holds. After `release` it holds nothing, whatever is set. */
export class BodyHold {
  /** Set by the budget, as are `bytes` and `sinceMs`; read-only for others. */
  owner: string;
  bytes = 0;
  sinceMs = 0;
  readonly body: HeldBody;
  readonly #budget: BodyBudget;
  #isReleased = false;

  constructor(budget: BodyBudget, owner: string, body: HeldBody) {
    this.#budget = budget;
    this.owner = owner;
    this.body = body;
  }

  /**
   * Sets the held bytes; 0 holds nothing. `isAwaited`: the sender has just sent some, and is to send more.
   * Returns BODY_MEMORY_EXHAUSTED where there is no space; the hold is unchanged then.
   */
  resize(bytes: number, isAwaited: boolean): AppError | null {
    if (this.#isReleased) return null;
    return this.#budget.change(this, bytes === 0 ? 0 : bytes + OVERHEAD_BYTES, isAwaited);
  }

  /**
   * Counts against `owner` from now on. Returns BODY_MEMORY_EXHAUSTED where its share is used up; nothing is held
   * then.
   */
  moveTo(owner: string): AppError | null {
    return this.#budget.move(this, owner);
  }

  /** Releases all. Idempotent. */
  release(): void {
    if (this.bytes > 0) this.#budget.change(this, 0, false);
    this.#isReleased = true;
  }
}

function noCapacity(share: BodyShare, bytesMax: number): AppError {
  const whose = {
    caller: 'the caller already holds all of its share of the memory',
    unauthenticated: 'callers that are not known yet hold all of their share of the memory',
    process: 'all of the memory is held',
  }[share];
  const metadata = {
    share,
    limit_bytes: String(bytesMax),
    retry_after_ms: String(RETRY_AFTER_MS),
  };
  return new AppError<SharedReason>(
    'BODY_MEMORY_EXHAUSTED',
    `there is no room for the body: ${whose} for request bodies; send it again later`,
    metadata,
  );
}
