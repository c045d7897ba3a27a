import type { DisabledEndpoint, EndpointState } from '../model/delivery.ts';
import { ENDPOINTS_PER_TENANT_MAX } from '../model/notification-store.ts';
import type { Addressee, Endpoint } from '../model/notification.ts';
import { tooManyEndpoints } from './store-refusals.ts';

/** Changed in place, so that whoever holds one sees it as it is. */
export type StoredEndpoint = Endpoint & {
  signingSecret: string;
  previousSecret: string;
  previousUntilMs: number;
  failingSinceMs: number | null;
  disabledAtMs: number | null;
};

/** Endpoints of the memory driver. */
export class MemoryEndpoints {
  readonly #byTenant = new Map<string, Map<string, StoredEndpoint>>();

  find(tenantId: string, id: string): StoredEndpoint | undefined {
    return this.#byTenant.get(tenantId)?.get(id);
  }

  ofTenant(tenantId: string): readonly StoredEndpoint[] {
    return [...(this.#byTenant.get(tenantId)?.values() ?? [])];
  }

  /** Errors: RESULT_TOO_LARGE. */
  put(endpoint: Endpoint, signingSecret: string | undefined): void {
    const { tenantId, id } = endpoint;
    let ofTenant = this.#byTenant.get(tenantId);
    if (ofTenant === undefined) this.#byTenant.set(tenantId, (ofTenant = new Map()));
    const before = ofTenant.get(id);
    if (before === undefined && ofTenant.size >= ENDPOINTS_PER_TENANT_MAX) throw tooManyEndpoints();
    const isKept = signingSecret === undefined;
    ofTenant.set(id, {
      ...endpoint,
      signingSecret: signingSecret ?? before?.signingSecret ?? '',
      previousSecret: isKept ? (before?.previousSecret ?? '') : '',
      previousUntilMs: isKept ? (before?.previousUntilMs ?? 0) : 0,
      failingSinceMs: before?.failingSinceMs ?? null,
      disabledAtMs: before?.disabledAtMs ?? null,
    });
  }

  delete(tenantId: string, id: string): boolean {
    return this.#byTenant.get(tenantId)?.delete(id) ?? false;
  }

  /** Without what nobody is shown. */
  bare({ tenantId, id, userId, channel, address }: StoredEndpoint): Endpoint {
    return { tenantId, id, userId, channel, address };
  }

  state(tenantId: string, id: string, nowMs: number): EndpointState | undefined {
    const found = this.find(tenantId, id);
    if (found === undefined) return undefined;
    const { failingSinceMs, disabledAtMs, previousUntilMs } = found;
    return {
      endpoint: this.bare(found),
      failingSinceMs,
      disabledAtMs,
      previousSecretUntilMs: previousUntilMs > nowMs ? previousUntilMs : null,
    };
  }

  addressee(tenantId: string, id: string, nowMs: number): Addressee | undefined {
    const found = this.find(tenantId, id);
    if (found === undefined) return undefined;
    const { signingSecret, previousSecret, previousUntilMs } = found;
    const secrets = [signingSecret, previousUntilMs > nowMs ? previousSecret : ''];
    return { endpoint: this.bare(found), signingSecrets: secrets.filter((one) => one !== '') };
  }

  enable(tenantId: string, id: string): boolean {
    const found = this.find(tenantId, id);
    if (found === undefined) return false;
    found.failingSinceMs = null;
    found.disabledAtMs = null;
    return true;
  }

  rotate(tenantId: string, id: string, secret: string, untilMs: number): boolean {
    const found = this.find(tenantId, id);
    if (found === undefined || found.signingSecret === '') return false;
    if (found.signingSecret !== secret) {
      found.previousSecret = found.signingSecret;
      found.signingSecret = secret;
    }
    found.previousUntilMs = untilMs;
    return true;
  }

  /** After an attempt or several to it; the endpoint itself, if it has now failed for too long. */
  fared(
    endpoint: StoredEndpoint,
    hasSent: boolean,
    nowMs: number,
    failingMsMax: number | null,
  ): readonly DisabledEndpoint[] {
    if (hasSent) {
      endpoint.failingSinceMs = null;
      return [];
    }
    const sinceMs = endpoint.failingSinceMs;
    endpoint.failingSinceMs = sinceMs ?? nowMs;
    if (sinceMs === null || failingMsMax === null || endpoint.disabledAtMs !== null) return [];
    if (nowMs - sinceMs < failingMsMax) return [];
    endpoint.disabledAtMs = nowMs;
    return [{ tenantId: endpoint.tenantId, endpointId: endpoint.id, failingSinceMs: sinceMs }];
  }
}
