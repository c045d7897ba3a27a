import type { BusyTenant } from '../model/delivery.ts';
import type { Endpoint } from '../model/notification.ts';

type PlaceEntry = { count: number; afterEndpoint: string; readonly endpoints: Map<string, number> };

/** Who has attempts in progress in one channel, by tenant and endpoint. */
export class DuePlaces {
  readonly max: number;
  readonly #perTenantMax: number;
  readonly #perEndpointMax: number;
  readonly #tenants = new Map<string, PlaceEntry>();
  #used = 0;

  constructor(max: number, perTenantMax: number, perEndpointMax: number) {
    this.max = max;
    this.#perTenantMax = perTenantMax;
    this.#perEndpointMax = perEndpointMax;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.max - this.#used;
  }

  /** What a claim must know. */
  busy(): readonly BusyTenant[] {
    return [...this.#tenants].map(([tenantId, entry]) => ({ tenantId, ...entry }));
  }

  /** By the rule of claims, for what is not claimed: a tenant has no more than there are places left. */
  hasCapacityFor({ tenantId, id }: Endpoint): boolean {
    const entry = this.#tenants.get(tenantId);
    const count = entry?.count ?? 0;
    return (
      count < Math.min(this.#perTenantMax, this.free) &&
      (entry?.endpoints.get(id) ?? 0) < this.#perEndpointMax
    );
  }

  began({ tenantId, id }: Endpoint): void {
    this.#used += 1;
    let entry = this.#tenants.get(tenantId);
    if (entry === undefined) {
      entry = { count: 0, afterEndpoint: '', endpoints: new Map() };
      this.#tenants.set(tenantId, entry);
    }
    entry.count += 1;
    entry.afterEndpoint = id;
    entry.endpoints.set(id, (entry.endpoints.get(id) ?? 0) + 1);
  }

  ended({ tenantId, id }: Endpoint): void {
    this.#used -= 1;
    const entry = this.#tenants.get(tenantId);
    if (entry === undefined) return;
    entry.count -= 1;
    if (entry.count === 0) {
      this.#tenants.delete(tenantId);
      return;
    }
    const left = (entry.endpoints.get(id) ?? 0) - 1;
    if (left > 0) entry.endpoints.set(id, left);
    else entry.endpoints.delete(id);
  }
}
