import type { UserKey } from '../model/notification.ts';
import {
  type NewStreamOrder,
  type StreamGrant,
  type StreamOrder,
  type StreamOrders,
  type StreamStanding,
  TOKEN_SECONDS_MAX,
} from '../model/stream-order.ts';

type Given = { readonly revision: number; readonly order: StreamOrder; readonly madeAtMs: number };

const KEPT_MS = 2 * TOKEN_SECONDS_MAX * 1000;
const PAGE = 1_000;

/** Orders about streams of the memory driver, by its process' clock. Reads of tokens are O(1). */
export class MemoryStreamOrders {
  #given: Given[] = [];
  #head = 0;
  readonly #voidUntil = new Map<string, number>();
  readonly #voidTokens = new Set<string>();
  readonly #endsWithToken = new Map<string, boolean>();

  issueMs(user: UserKey): number {
    return Math.max(Date.now(), (this.#voidUntil.get(userText(user)) ?? 0) + 1);
  }

  standing(grant: StreamGrant): StreamStanding {
    const untilMs = this.#voidUntil.get(userText(grant)) ?? 0;
    const isTokenVoid = this.#voidTokens.has(tokenText(grant.tenantId, grant.tokenId));
    return {
      isRevoked: grant.issuedAtMs <= untilMs || isTokenVoid,
      endsWithToken: this.endsWithToken(grant.tenantId),
    };
  }

  endsWithToken(tenantId: string): boolean {
    return this.#endsWithToken.get(tenantId) ?? false;
  }

  give(order: NewStreamOrder): void {
    const whole: StreamOrder =
      order.kind === 'revoke_user' ? { ...order, atMs: this.issueMs(order) } : order;
    if (whole.kind === 'revoke_user') this.#voidUntil.set(userText(whole), whole.atMs);
    if (whole.kind === 'revoke_token') {
      this.#voidTokens.add(tokenText(whole.tenantId, whole.tokenId));
    }
    if (whole.kind === 'policy') this.#endsWithToken.set(whole.tenantId, whole.endsWithToken);
    this.#head += 1;
    this.#given.push({ revision: this.#head, order: whole, madeAtMs: Date.now() });
  }

  after(revision: number | undefined): StreamOrders {
    const head = this.#head;
    if (revision === undefined) return { head, orders: [], hasGap: false };
    const oldest = this.#given[0]?.revision ?? head + 1;
    const orders = this.#given.filter((one) => one.revision > revision).slice(0, PAGE);
    return { head, orders, hasGap: revision + 1 < oldest };
  }

  purge(limit: number): number {
    const beforeMs = Date.now() - KEPT_MS;
    let count = 0;
    for (const { order, madeAtMs } of this.#given) {
      if (madeAtMs >= beforeMs || count === limit) break;
      if (order.kind === 'revoke_token') {
        this.#voidTokens.delete(tokenText(order.tenantId, order.tokenId));
      } else if (order.kind === 'revoke_user') {
        const key = userText(order);
        if (this.#voidUntil.get(key) === order.atMs) this.#voidUntil.delete(key);
      }
      count += 1;
    }
    this.#given = this.#given.slice(count);
    return count;
  }
}

function userText({ tenantId, userId }: UserKey): string {
  return `${tenantId} ${userId}`;
}

function tokenText(tenantId: string, tokenId: string): string {
  return `${tenantId} ${tokenId}`;
}
