import { BudgetService } from '../../gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { AdminService } from '../../gen/workspace/v1/admin_service_pb.ts';
import { isOneOfSecrets } from '../../http/service-tokens.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  type AuthorizeResult,
  type Authorize,
  type Credential,
  type CredentialSource,
  rateLimited,
} from '../callers/caller.ts';

/** Finds callers by an `Authorization` header. */
export interface CallerSource extends CredentialSource {
  /** Finds the credential like `peek`, also of a header that was not presented before: then it may be a promise. */
  identify(header: string): Credential | null | Promise<Credential | null>;
  /** The credential of a call that is let in without one. */
  readonly anonymous: Credential;
}

/** Services that may answer without a credential. */
export type OpenService = 'health' | 'reflection';

/** Credentials that callers must present, in their present state: both are read again for each call. */
export type Credentials = {
  readonly callers: CallerSource;
  /** Secrets of AdminService, ModelService and BudgetService, which are disabled while there is none. */
  readonly adminSecrets: () => readonly string[];
  readonly openServices: readonly OpenService[];
};

const PREFIXES = {
  health: ['/grpc.health.v1.Health/'],
  reflection: [
    '/grpc.reflection.v1.ServerReflection/',
    '/grpc.reflection.v1alpha.ServerReflection/',
  ],
} as const satisfies Readonly<Record<OpenService, readonly string[]>>;

/** The error of a call without a valid credential; it does not state what is wrong with it. */
export function credentialInvalid(): AppError {
  return new AppError<AuthzReason>('CREDENTIAL_INVALID', 'a valid service token is required');
}

/** A credential, counted against the rate of its caller. */
function admissionOf(credential: Credential | null): AuthorizeResult {
  if (credential === null) return credentialInvalid();
  const { caller } = credential;
  return caller.admits() ? credential : rateLimited(caller.name);
}

/** Finds the caller by an `Authorization` header, and counts the call. */
export function admissionBy(
  callers: CallerSource,
  authorization: string,
): AuthorizeResult | Promise<AuthorizeResult> {
  const found = callers.identify(authorization);
  return found instanceof Promise ? found.then(admissionOf) : admissionOf(found);
}

/**
 * Checks the credential of every call, then the rate of its caller, then the operator secret of the methods
 * of AdminService, ModelService and BudgetService. Unknown methods are left to the adapter.
 */
export function createAuthorize({ callers, adminSecrets, openServices }: Credentials): Authorize {
  const adminPaths = new Set(
    [AdminService, ModelService, BudgetService].flatMap(({ typeName, methods }) =>
      methods.map((method) => `/${typeName}/${method.name}`),
    ),
  );
  const openPrefixes = openServices.flatMap((name) => PREFIXES[name]);
  return (path, header) => {
    if (openPrefixes.some((prefix) => path.startsWith(prefix))) return callers.anonymous;
    const secret = adminPaths.has(path) ? header('x-admin-secret') : null;
    const admission = admissionBy(callers, header('authorization'));
    if (secret === null) return admission;
    const finish = (admitted: AuthorizeResult): AuthorizeResult =>
      admitted instanceof AppError ? admitted : (adminRefusal(secret, adminSecrets()) ?? admitted);
    return admission instanceof Promise ? admission.then(finish) : finish(admission);
  };
}

/** Why a call of AdminService is refused, or null. `secrets` is empty when none is configured. */
export function adminRefusal(given: string, secrets: readonly string[]): AppError | null {
  if (secrets.length === 0) {
    return new AppError<AuthzReason>(
      'ADMIN_DISABLED',
      'AdminService is disabled: no operator secret is set',
    );
  }
  if (isOneOfSecrets(given, secrets)) return null;
  return new AppError<AuthzReason>('ADMIN_SECRET_INVALID', 'X-Admin-Secret is missing or wrong');
}
