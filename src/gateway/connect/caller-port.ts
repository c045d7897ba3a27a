import type { CallerPort } from '../../http/connect/protocol/caller-port.ts';
import { type Authorize, type Credential, kCredential, NOBODY } from '../callers/caller.ts';
import { mustAdmit, type OnRefused } from '../callers/guarded-service.ts';
import { isChange, RULES } from '../callers/method-rules.ts';

/**
 * The adapter's port to callers, by their credentials and the rules of methods. Without `authorize` every call is let in, and
 * every caller
 * is unknown. `onOutOfScope` is called for each call beyond the scopes of its caller; without it no scopes are checked here.
 */
export function createCallerPort(authorize?: Authorize, onOutOfScope?: OnRefused): CallerPort {
  return {
    key: kCredential,
    admit: (path, header) => (authorize === undefined ? NOBODY : authorize(path, header)),
    refusalAnywhere(path, { caller }: Credential) {
      const rule = onOutOfScope === undefined ? undefined : RULES.get(path);
      const error = rule === undefined ? null : caller.refusalAnywhere(rule);
      if (rule !== undefined && error !== null) onOutOfScope?.(rule, caller.name);
      return error;
    },
    admitOf(method, credential: Credential) {
      const rule = RULES.get(`/${method.parent.typeName}/${method.name}`);
      if (onOutOfScope === undefined || rule === undefined) return;
      return (rest) => mustAdmit(credential, rule, rest, onOutOfScope);
    },
    isChange,
  };
}
