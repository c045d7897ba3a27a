import { artifactRoutes } from '../face/api/artifact-routes.ts';
import type { Call } from '../face/api/call.ts';
import { eventRoutes } from '../face/api/event-routes.ts';
import { healthRoutes } from '../face/api/health-routes.ts';
import { logPageRoutes } from '../face/api/log-page-routes.ts';
import type { Route } from '../face/api/router.ts';
import { runRoutes } from '../face/api/run-routes.ts';
import { secretRoutes } from '../face/api/secret-routes.ts';
import { inboxRoute, syncRoutes } from '../face/api/sync-routes.ts';
import { workflowRoutes } from '../face/api/workflow-routes.ts';
import { pageRoutes } from '../face/page/page-routes.ts';
import type { RunnerParts } from './runner-parts.ts';

/**
 * All routes of the runner; the inbox apart, because a port of its own may serve it. `needsToken` says
 * whether the API does.
 */
export function routesOf(
  parts: RunnerParts,
  isStopping: () => boolean,
  needsToken: boolean,
): { readonly routes: readonly Route[]; readonly inbox: Route } {
  const { runs, keys, follower, runsDir, catalog, secrets, sync, hub, workspace, version } = parts;
  const audit = auditOf(parts);
  const routes = [
    ...runRoutes({ runs, keys, follower, audit }),
    ...logPageRoutes({ runs, follower }),
    ...artifactRoutes(runs, runsDir),
    ...workflowRoutes(catalog),
    ...secretRoutes(secrets),
    ...syncRoutes(sync),
    ...eventRoutes(hub),
    ...healthRoutes({ workspace, version, runs, isStopping }),
    ...pageRoutes({ runs, catalog, secrets, workspace, needsToken }),
  ];
  return {
    routes: routes.map((route) => audited(route, audit)),
    inbox: inboxRoute(sync, parts.inboxEvents),
  };
}

type Audit = (action: string, fields: Readonly<Record<string, unknown>>, call: Call) => void;

/** Audit lines are written at any log level: who started, changed or removed what. */
function auditOf({ logger }: RunnerParts): Audit {
  const audit = logger.child({ event: 'audit' }, { level: 'info' });
  return (action, fields, { actor, requestId }) => {
    const { ip, origin, userAgent } = actor;
    audit.info(
      { action, ...fields, ip, origin, user_agent: userAgent, request_id: requestId },
      'audit',
    );
  };
}

/** Calls that change secrets, variables and the synchronisation are told by their route and name. */
function audited(route: Route, audit: Audit): Route {
  const isChange = route.method !== 'GET' && !route.pattern.startsWith('/api/runs');
  if (!isChange) return route;
  return {
    ...route,
    handle: async (call) => {
      const answer = await route.handle(call);
      audit(`${route.method} ${route.pattern}`, { ...call.parameters }, call);
      return answer;
    },
  };
}
