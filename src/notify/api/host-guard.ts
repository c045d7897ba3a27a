import { HostAllowList } from '../../http/host-allow-list.ts';
import type { HostGuard } from '../../http/host-guard.ts';
import { requestIdOf } from '../../http/request-id.ts';
import { AppError } from '../../shared/app-error.ts';
import { errorAnswer } from './notify-error.ts';

export type HostGuardSettings = {
  /** What the listeners bind to. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly serviceAuthTokens: readonly string[];
};

/** Of a name in the log: whoever calls chooses it. */
const SHOWN_LENGTH_MAX = 100;

/**
 * While no service token is set: refuses what is not addressed to a name of this service, with 403
 * permission_denied. `onIncident` is told the name. Undefined once there are tokens.
 */
export function createHostGuard(
  settings: HostGuardSettings,
  onIncident: (event: string, detail: string) => void,
): HostGuard | undefined {
  if (settings.serviceAuthTokens.length > 0) return undefined;
  return {
    hosts: new HostAllowList(settings),
    refuse: (exchange) => {
      onIncident('host_refused', exchange.header('host').slice(0, SHOWN_LENGTH_MAX));
      const error = new AppError(
        'HOST_NOT_ALLOWED',
        'the request is not addressed to a name of this service; service tokens or NOTIFY_ALLOWED_HOSTS admit more',
      );
      const { status, body } = errorAnswer(error);
      const requestId = requestIdOf(exchange.header('x-request-id'));
      exchange.send(status, 'application/json', body, ['x-request-id', requestId]);
    },
  };
}
