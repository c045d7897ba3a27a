import type { ClaimRequest } from '../model/delivery.ts';
import type { OutboundChannel } from '../model/notification.ts';
import { TimeHeap } from './time-heap.ts';

/** What is claimed; compared by identity. */
export type Claimable = {
  readonly channel: OutboundChannel;
  readonly tenantId: string;
  readonly endpointId: string;
};

type Lanes<T> = Map<string, T[]>;

/**
 * The deliveries of one channel that wait: for their time in a heap, and once that has come in a queue for each endpoint.
 * Claims go round tenants and round the endpoints of each by the rule of notify.claim (migrations/notify), in O(what is
 * claimed and what is busy). What was added and is not `isCurrent` any more is dropped when it is met.
 */
export class MemoryClaims<T extends Claimable> {
  readonly #waiting = new TimeHeap<T>();
  /** In the order of their turns: whoever was served goes to the end. */
  readonly #ready = new Map<string, Lanes<T>>();
  readonly #isCurrent: (one: T) => boolean;

  constructor(isCurrent: (one: T) => boolean) {
    this.#isCurrent = isCurrent;
  }

  get nextMs(): number | undefined {
    return this.#waiting.nextMs;
  }

  add(atMs: number, one: T): void {
    this.#waiting.add(atMs, one);
  }

  claim(request: ClaimRequest, isOff: (one: T) => boolean): readonly T[] {
    this.#promote(request.nowMs);
    const claimed: T[] = [];
    const busy = new Map(request.busy.map((one) => [one.tenantId, one]));
    const counts = new Map(request.busy.map((one) => [one.tenantId, one.count]));
    const ofEndpoint = new Map<string, number>();
    for (const { tenantId, endpoints } of busy.values()) {
      for (const [id, count] of endpoints) ofEndpoint.set(`${tenantId} ${id}`, count);
    }
    for (let before = -1; before < claimed.length;) {
      before = claimed.length;
      for (const tenantId of this.#ready.keys()) {
        const count = counts.get(tenantId) ?? 0;
        const isFull = (taken: number): boolean =>
          taken === request.visitMax ||
          count + taken >= Math.min(request.perTenantMax, request.places - claimed.length - taken);
        const taken = this.#visit(tenantId, isFull, request.perEndpointMax, ofEndpoint, isOff);
        counts.set(tenantId, count + taken.length);
        claimed.push(...taken);
      }
      // Those that were met go behind those that come anew.
      for (const { tenantId } of claimed.slice(before)) this.#toTheEnd(this.#ready, tenantId);
    }
    return claimed;
  }

  #visit(
    tenantId: string,
    isFull: (taken: number) => boolean,
    perEndpointMax: number,
    ofEndpoint: Map<string, number>,
    isOff: (one: T) => boolean,
  ): readonly T[] {
    const lanes = this.#ready.get(tenantId) as Lanes<T>;
    const taken: T[] = [];
    for (const endpointId of lanes.keys()) {
      if (isFull(taken.length)) break;
      const key = `${tenantId} ${endpointId}`;
      const count = ofEndpoint.get(key) ?? 0;
      if (count >= perEndpointMax) continue;
      const one = this.#first(lanes, endpointId, isOff);
      if (one === undefined) continue;
      taken.push(one);
      ofEndpoint.set(key, count + 1);
    }
    for (const { endpointId } of taken) this.#toTheEnd(lanes, endpointId);
    if (lanes.size === 0) this.#ready.delete(tenantId);
    return taken;
  }

  #first(lanes: Lanes<T>, endpointId: string, isOff: (one: T) => boolean): T | undefined {
    const lane = lanes.get(endpointId) as T[];
    let first = lane[0];
    while (first !== undefined && !this.#isCurrent(first)) {
      lane.shift();
      first = lane[0];
    }
    if (first !== undefined && isOff(first)) return undefined;
    if (first !== undefined) lane.shift();
    if (lane.length === 0) lanes.delete(endpointId);
    return first;
  }

  #promote(nowMs: number): void {
    for (;;) {
      const one = this.#waiting.takeDue(nowMs);
      if (one === undefined) return;
      if (!this.#isCurrent(one)) continue;
      let lanes = this.#ready.get(one.tenantId);
      if (lanes === undefined) this.#ready.set(one.tenantId, (lanes = new Map<string, T[]>()));
      const lane = lanes.get(one.endpointId);
      if (lane === undefined) lanes.set(one.endpointId, [one]);
      else lane.push(one);
    }
  }

  #toTheEnd<V>(map: Map<string, V>, key: string): void {
    const value = map.get(key);
    if (value === undefined) return;
    map.delete(key);
    map.set(key, value);
  }
}
