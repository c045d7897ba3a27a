import type { RunService } from '../../model/ports.ts';
import { jsonAnswer } from './answer.ts';
import type { Route } from './router.ts';

export type Health = {
  /** Absolute path of the project. */
  readonly workspace: string;
  readonly version: string;
  readonly runs: Pick<RunService, 'counts'>;
  readonly isStopping: () => boolean;
};

/** Needs no token: it tells nothing but that the service is there. */
export function healthRoutes({ workspace, version, runs, isStopping }: Health): readonly Route[] {
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
  ];
}

const NOT_STORED = ['cache-control', 'no-store'];
