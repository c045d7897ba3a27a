/** The result of a scan; reused between requests, so copy what must be kept. */
export type ScopeScan = {
  projectId: string;
  tenantId: string;
  token: string;
  /** The version of the model that a query names; 0 is the one in force. */
  modelVersion: number;
  /** Whether a Check asks for a userset. */
  namesSet: boolean;
};

/** An empty result to scan into. */
export function createScopeScan(): ScopeScan {
  return { projectId: '', tenantId: '', token: '', modelVersion: 0, namesSet: false };
}

/** Characters of a value at most, bytes in protobuf; a tenant id has 128, a token fewer than 200. */
export const SCOPE_VALUE_LENGTH_MAX = 512;
