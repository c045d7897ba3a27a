import {
  type Admitted,
  type CallerPort,
  OPEN_CALLERS,
} from '../../http/connect/protocol/caller-port.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';

const NEVER = new AbortController().signal;

/**
 * The callers of the internal listener, as the Connect adapter asks about them: each is known by the place of its service token. `paths`
 * are those of methods; what is called besides is answered to anybody.
 */
export function createTokenCallers(
  authenticator: Authenticator,
  paths: ReadonlySet<string>,
): CallerPort {
  // One for each token that is configured; their number is bounded by the setting.
  const known = new Map<number, Admitted>();
  return {
    ...OPEN_CALLERS,
    admit(path, header) {
      if (!paths.has(path)) return OPEN_CALLERS.key.defaultValue;
      const token = authenticator.tokenOf(header('authorization'));
      if (token < 0) {
        const problem = 'a service token is needed: Authorization: Bearer';
        return new AppError('CREDENTIAL_INVALID', problem);
      }
      const found = known.get(token) ?? { caller: { name: `token-${token}` }, revoked: NEVER };
      known.set(token, found);
      return found;
    },
  };
}
