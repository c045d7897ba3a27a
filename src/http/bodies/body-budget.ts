import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { SharedReason } from '../../shared/reasons.ts';

/** Which share was used up. */
type BodyShare = 'caller' | 'unauthenticated' | 'process';

/** A body that memory is held for. */
export interface HeldBody {
  /** The body must free memory: it drops its bytes at once, and is answered with `error`. It holds nothing any more by then. */
  evict(error: AppError): void;
}

/** The body of a hold that is never cut: nothing of it is awaited. */
export const notEvictable: HeldBody = { evict: () => undefined };

type BodyBudgetOptions = {
  /** The limit of all bodies together. */
  readonly bytesMax: number;
  /** Milliseconds of a clock that never goes back; default the process's. */
  readonly now?: (() => number) | undefined;
  /** The limit of those that are not authenticated yet; default an eighth of all. */
  readonly unauthenticatedBytesMax?: number | undefined;
};

/** What became of bodies: refused for a share that was used up, or as they came in crumbs; cut to make place in a share. */
type BodyCounts = {
  readonly refused: Record<BodyShare | 'crumbs', number>;
  readonly cut: Record<BodyShare, number>;
};

/** One caller may hold half of the budget, all that is not authenticated yet an eighth of it. */
const CALLER_PART = 2;
const UNAUTHENTICATED_PART = 8;
/** A body that has sent nothing for so long makes place where others need it. */
const IDLE_MS = 1_000;
/** What an unfinished body costs beside its bytes. */
const OVERHEAD_BYTES = 1_024;
/** Delay that a refused caller is advised to wait. */
const RETRY_AFTER_MS = 1_000;
/** Where nothing is said: tests, and tools. */
const BYTES_DEFAULT = 256 * 1_048_576;
/** The owner of what is not authenticated yet. */
export const NO_OWNER = '';

type Account = {
  readonly owner: string;
  readonly bytesMax: number;
  heldBytes: number;
  /** Bodies with bytes, of which more is to come, the one that sent last at the end. */
  readonly awaited: Set<BodyHold>;
};

/**
 * The memory of all request bodies of a process. What is held is counted, not what was declared: a body grows as it comes, and
 * releases all when its call ends. A caller has a share of it, over all its connections, and so has what nobody has authenticated yet. Beyond
 * a share, bodies that have sent nothing for a second make place, the one first that has been quiet for longest; where there is none, who needs
 * more is refused. One that still sends is never cut for another. O(1) while there is room.
 *
 * B1 What all bodies hold is never above `bytesMax`, what those of an owner hold never above its
 *    share. [body-budget.test.ts]
 * B2 What a body held is released once, whatever becomes of it. [body-budget.test.ts]
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
  /** Only of owners that hold something. */
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

  /** Holds nothing before its first `resize`. `owner` is the name of the caller, NO_OWNER while it is not known. */
  open(owner: string, body: HeldBody): BodyHold {
    return new BodyHold(this, owner, body);
  }

  /** Replaces the bytes of a hold by `bytes`; on an error it holds what it did. */
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

  /** Counts what a hold has against another owner. */
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

  /** The one of an owner that has been quiet for longest, and long enough. */
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

/** What one body holds. Behind `release` it holds nothing, whatever is set. */
export class BodyHold {
  /** As its budget has it; others only read. */
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
   * It holds `bytes` from now on, 0: nothing. `isAwaited` says that its sender is to send more, and has just done so.
   * Returns BODY_MEMORY_EXHAUSTED where there is no room; it holds what it held before then.
   */
  resize(bytes: number, isAwaited: boolean): AppError | null {
    if (this.#isReleased) return null;
    return this.#budget.change(this, bytes === 0 ? 0 : bytes + OVERHEAD_BYTES, isAwaited);
  }

  /** Counts against `owner` from now on. Returns BODY_MEMORY_EXHAUSTED where it has no room for it; nothing is held then. */
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
