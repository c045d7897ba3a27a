import { jsonAnswer } from '../api/answer.ts';
import { artifactRoutes } from '../api/artifact-routes.ts';
import type { ApiCall } from '../api/call.ts';
import { eventRoutes } from '../api/event-routes.ts';
import { logPageRoutes } from '../api/log-page-routes.ts';
import type { ApiRoute } from '../api/router.ts';
import { runRoutes } from '../api/run-routes.ts';
import { secretRoutes } from '../api/secret-routes.ts';
import { inboxRoute, syncRoutes } from '../api/sync-routes.ts';
import { workflowRoutes } from '../api/workflow-routes.ts';
import type { RunService } from '../model/ports.ts';
import { pageRoutes } from '../ui/page-routes.ts';
import type { RunnerWiring } from './runner-wiring.ts';

type Health = {
  /** Absolute path of the project. */
  readonly workspace: string;
  readonly version: string;
  readonly runs: Pick<RunService, 'counts'>;
  readonly isStopping: () => boolean;
  /** The loops in the background that fail. */
  readonly failingLoops: () => readonly string[];
};

/** They need no token: they say no more than that the service is there, and what of it fails. */
function healthRoutes({
  workspace,
  version,
  runs,
  isStopping,
  failingLoops,
}: Health): readonly ApiRoute[] {
  return [
    {
      method: 'GET',
      pattern: '/health',
      handle: () => {
        if (isStopping()) return jsonAnswer(503, { status: 'shutting_down' }, NOT_STORED);
        const uptimeSeconds = Math.floor(process.uptime());
        const body = { status: 'ok', workspace, version, uptimeSeconds, runs: runs.counts() };
        return jsonAnswer(200, body, NOT_STORED);
      },
    },
    {
      method: 'GET',
      pattern: '/readyz',
      handle: () =>
        isStopping()
          ? jsonAnswer(503, { status: 'unavailable' }, NOT_STORED)
          : jsonAnswer(200, { status: 'ready', degraded: failingLoops() }, NOT_STORED),
    },
  ];
}

const NOT_STORED = ['cache-control', 'no-store'];

/**
 * All routes of the runner; the inbox apart, because a port of its own may serve it. `needsToken` says
 * whether the API does.
 */
export function routesOf(
  parts: RunnerWiring,
  isStopping: () => boolean,
  needsToken: boolean,
): { readonly routes: readonly ApiRoute[]; readonly inbox: ApiRoute } {
  const { runs, keys, follower, runsDir, catalog, secrets, sync, hub, loops, workspace, version } =
    parts;
  const audit = auditOf(parts);
  const routes = [
    ...runRoutes({ runs, keys, follower, audit }),
    ...logPageRoutes({ runs, follower }),
    ...artifactRoutes(runs, runsDir),
    ...workflowRoutes(catalog),
    ...secretRoutes(secrets),
    ...syncRoutes(sync),
    ...eventRoutes(hub, runs),
    ...healthRoutes({ workspace, version, runs, isStopping, failingLoops: () => loops.failing }),
    ...pageRoutes({ runs, catalog, secrets, workspace, needsToken }),
  ];
  return {
    routes: routes.map((route) => audited(route, audit)),
    inbox: inboxRoute(sync, parts.inboxEvents),
  };
}

type Audit = (action: string, fields: Readonly<Record<string, unknown>>, call: ApiCall) => void;

/** Audit lines are written at any log level: who started, changed or removed what. */
function auditOf({ logger }: RunnerWiring): Audit {
  const audit = logger.child({ event: 'audit' }, { level: 'info' });
  return (action, fields, { actor, requestId }) => {
    const { ip, origin, userAgent } = actor;
    audit.info(
      { action, ...fields, ip, origin, user_agent: userAgent, request_id: requestId },
      'audit',
    );
  };
}

/** Calls that change secrets, variables and the synchronisation are reported by their route and name. */
function audited(route: ApiRoute, audit: Audit): ApiRoute {
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
