import type { Reach, Reachable } from '../workload/reachable.ts';
import { RpcClient } from '../workload/rpc-client.ts';
import { ADMIN_SECRET, type Place, TOKEN } from './cluster.ts';

/** Callers' connections to the instances of a cluster, as these come and go. */
export class ClusterReach implements Reach {
  readonly #clients = new Map<Place, RpcClient>();

  get all(): readonly Reachable[] {
    return [...this.#clients]
      .filter(([place]) => !place.isHidden)
      .map(([place, client]) => ({ index: place.index, client, isPaused: place.isPaused }));
  }

  /** To be told of every change of a place. */
  changed(place: Place): void {
    const before = this.#clients.get(place);
    this.#clients.delete(place);
    void before?.close();
    if (place.baseUrl === undefined) return;
    const credentials = { token: TOKEN, adminSecret: ADMIN_SECRET };
    this.#clients.set(place, new RpcClient(place.baseUrl, credentials));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
    this.#clients.clear();
  }
}
