import { BudgetService } from '../../gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { AdminService } from '../../gen/workspace/v1/admin_service_pb.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';
import { adminRefusal } from './authentication.ts';
import type { RpcReason } from './rpc-reason.ts';

/** The credential check of the adapter: null lets a call pass. */
export type Authorize = (
  path: string,
  header: (lowerCaseName: string) => string,
) => AppError | null;

/** What callers must know, as it stands at this moment: both are asked again for each call. */
export type Credentials = {
  readonly authenticator: Authenticator;
  /** Of AdminService, ModelService and BudgetService, which are disabled while there is none. */
  readonly adminSecrets: () => readonly string[];
};

/** Bypasses the credential like /healthz: probes of orchestrators cannot send one. */
const HEALTH_PREFIX = '/grpc.health.v1.Health/';

/**
 * Checks the service token of every call and, after it, the operator secret of the methods that
 * AdminService, ModelService and BudgetService have. What an unknown method answers is left to the adapter.
 */
export function createAuthorize({ authenticator, adminSecrets }: Credentials): Authorize {
  const adminPaths = new Set(
    [AdminService, ModelService, BudgetService].flatMap(({ typeName, methods }) =>
      methods.map((method) => `/${typeName}/${method.name}`),
    ),
  );
  return (path, header) => {
    if (path.startsWith(HEALTH_PREFIX)) return null;
    if (!authenticator.accepts(header('authorization'))) {
      return new AppError<RpcReason>('CREDENTIAL_INVALID', 'a valid service token is required');
    }
    return adminPaths.has(path) ? adminRefusal(header('x-admin-secret'), adminSecrets()) : null;
  };
}
