import type { CallerPort } from '../../http/connect/protocol/caller-port.ts';
import { type Authorize, type Credential, kCredential, NOBODY } from '../callers/caller.ts';
import { mustAdmit, type OnRefused } from '../callers/guarded-service.ts';
import { isChange, RULES } from '../callers/method-rules.ts';

/**
 * What the adapter asks about callers, answered by their credentials and the rules of methods. Without `authorize` nobody is asked,
 * and nobody is known. `onOutOfScope` is notified of each call beyond the scopes of its caller; without it nobody's scopes are looked
 * at here.
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
