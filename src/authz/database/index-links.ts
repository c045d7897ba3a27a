import type { ClientBase } from 'pg';
import type { EventLog } from '../../observability/logger.ts';
import type { IndexConnection } from '../../services/reads/index-queries.ts';
import type { PostgresTarget } from '../../store/postgres/pool.ts';
import { type QueryLink, startQueryLink } from '../../store/postgres/query-link.ts';
import { INDEX_SESSION, readIndex } from '../../store/sql/reads/read-index.ts';

/** Connections that the read index has for itself: no pool can keep it waiting, and no other query. */
export const INDEX_CONNECTIONS = 2;

/** The connections of the read index. */
export type IndexLinks = {
  readonly connections: readonly IndexConnection[];
  stop(): Promise<void>;
};

/** Opens them; each is made again when it is lost. `events` are those of `ReadIndex`. */
export function startIndexLinks(
  target: PostgresTarget,
  prepare: (client: ClientBase) => Promise<void>,
  events: { connected(): void; disconnected(): void },
  log: EventLog,
): IndexLinks {
  const links = Array.from({ length: INDEX_CONNECTIONS }, () =>
    startQueryLink({
      target,
      applicationName: 'gatehouse-read-index',
      session: INDEX_SESSION,
      prepare,
      onUp: () => events.connected(),
      onDown: () => events.disconnected(),
      log,
    }),
  );
  return {
    connections: links.map(connectionOver),
    stop: async () => {
      await Promise.all(links.map((link) => link.stop()));
    },
  };
}

function connectionOver(link: QueryLink): IndexConnection {
  return {
    get isUp() {
      return link.isUp;
    },
    get roundTripMs() {
      return link.roundTripMs;
    },
    query: (asks) => link.run((client, timeoutMs) => readIndex(client, asks, timeoutMs)),
  };
}
