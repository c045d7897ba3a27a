import type { InboxEvents } from '../scheduler/triggers/inbox-events.ts';
import type { SyncKind } from '../sync/cache-entry.ts';
import { INBOX_BODY_BYTES_MAX } from '../sync/inbox.ts';
import type { SyncService } from '../sync/sync-service.ts';
import { jsonAnswer, type Answer } from './answer.ts';
import type { ApiCall } from './call.ts';
import { queryChoice, queryInteger, queryText, queryTime } from './query-fields.ts';
import type { BodyRule, ApiRoute } from './router.ts';

export const INBOX_PATH = '/api/sync/inbox';

const KINDS: readonly SyncKind[] = ['issues', 'discussions', 'wiki', 'releases'];
const AUDIT_KINDS = ['pull', 'push', 'webhook', 'config'] as const;
const LIMIT_MAX = 10_000;
/** Of caches, which may hold 20,000 entries and 128 MB of text. */
const LIMIT_DEFAULT = 1_000;

/** Synchronisation with the code host, and the deployment ledger. */
export function syncRoutes(sync: SyncService): readonly ApiRoute[] {
  const required: BodyRule = { kind: 'json', isRequired: true };
  const optional: BodyRule = { kind: 'json', isRequired: false };
  return [
    {
      method: 'GET',
      pattern: '/api/sync/config',
      handle: () => jsonAnswer(200, sync.getConfig()),
    },
    {
      method: 'PUT',
      pattern: '/api/sync/config',
      body: required,
      handle: async ({ json }) => jsonAnswer(200, await sync.putConfig(json)),
    },
    {
      method: 'POST',
      pattern: '/api/sync/github',
      body: optional,
      handle: async ({ json }) => jsonAnswer(200, await sync.pull(json ?? {})),
    },
    {
      method: 'POST',
      pattern: '/api/sync/pr',
      body: optional,
      handle: async ({ json }) => jsonAnswer(201, await sync.push(json ?? {})),
    },
    ...KINDS.map((kind): ApiRoute => ({
      method: 'GET',
      pattern: `/api/sync/${kind}`,
      handle: (call) => entries(sync, kind, call),
    })),
    {
      method: 'GET',
      pattern: '/api/sync/audit',
      handle: async ({ query }) =>
        jsonAnswer(
          200,
          await sync.audit({
            limit: queryInteger(query, 'limit', 1, LIMIT_MAX),
            since: queryTime(query, 'since'),
            kind: queryChoice(query, 'kind', AUDIT_KINDS),
          }),
        ),
    },
    {
      method: 'GET',
      pattern: '/api/sync/status',
      handle: () => jsonAnswer(200, sync.status()),
    },
    {
      method: 'GET',
      pattern: '/api/deployments',
      handle: ({ query }) =>
        jsonAnswer(
          200,
          sync.deployments.query({
            environment: queryText(query, 'environment') ?? queryText(query, 'env'),
            status: queryText(query, 'status'),
            limit: queryInteger(query, 'limit', 1, LIMIT_MAX),
          }),
        ),
    },
  ];
}

/** The webhook inbox, which a listener of its own may serve as well. */
export function inboxRoute(sync: SyncService, events: InboxEvents): ApiRoute {
  return {
    method: 'POST',
    pattern: INBOX_PATH,
    body: { kind: 'bytes', maxBytes: INBOX_BODY_BYTES_MAX },
    handle: async ({ headers, bytes }) => {
      const delivery = await sync.verifyDelivery({ headers, rawBody: bytes });
      if (delivery.kind === 'ping') return jsonAnswer(200, { pong: true });
      const { event, deliveryId } = delivery;
      if (delivery.kind === 'duplicate') {
        return jsonAnswer(200, { duplicate: true, event, deliveryId });
      }
      try {
        const { runs, problems } = await events.start(event, delivery.payload);
        const texts = problems.map(
          ({ workflow, code, message }) => `${code}${workflow && ` (${workflow})`}: ${message}`,
        );
        if (texts.length > 0) await sync.auditProblems(event, deliveryId, texts);
        const more = problems.length === 0 ? {} : { problems };
        return jsonAnswer(202, { accepted: true, event, deliveryId, runs, ...more });
      } catch (error) {
        // So that the sender may try again.
        await delivery.release();
        throw error;
      }
    },
  };
}

function entries(sync: SyncService, kind: SyncKind, { query }: ApiCall): Answer {
  const found = sync.entries(kind, {
    state: queryText(query, 'state'),
    since: queryTime(query, 'since'),
    limit: queryInteger(query, 'limit', 1, LIMIT_MAX) ?? LIMIT_DEFAULT,
  });
  const syncedAt = sync.syncedAt(kind);
  return jsonAnswer(200, found, syncedAt === undefined ? [] : ['x-synced-at', syncedAt], true);
}
