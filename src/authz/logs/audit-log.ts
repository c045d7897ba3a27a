import type { Logger } from '../../observability/logger.ts';
import type { AdminAudit, WrittenModel } from '../../services/ports.ts';

/** One change of a tuple. */
export type TupleAuditRecord = {
  readonly kind: 'tuple_operation';
  readonly operation: 'insert' | 'delete';
  readonly project_id: string;
  readonly tenant_id: string;
  /** The shard's write sequence, and the position of the change within that write (from 0). */
  readonly seq: number;
  readonly ordinal: number;
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  /** `user:alice`, `*` for the wildcard, `ns:*` for that of a namespace, `ns:id#relation`, `ns:id#` for an object itself. */
  readonly subject: string;
  readonly rpc: string;
  /** Absent where a call has no acting user. */
  readonly acting_user_id?: string;
  /** The name of the service that called; absent where the instance did it by itself. */
  readonly caller?: string;
  readonly request_id: string;
  /** RFC 3339. */
  readonly at: string;
};

/** One mutation of a project. */
export type AdminAuditRecord = {
  readonly kind: 'admin_action';
  readonly operation: AdminAudit['operation'];
  readonly project_id: string;
  /** Name of the operator secret that the call carried, in the form that versions of models use. */
  readonly by: string;
  readonly caller?: string;
  readonly rpc: string;
  readonly request_id: string;
  readonly at: string;
  /** Version of the model that was written; absent where none was. */
  readonly model_version?: number;
  readonly model_sha256?: string;
  /** Whether it decides from now on, or is on its way. */
  readonly model_state?: WrittenModel['state'];
  /** Stored tuples that do not fit it, where they were examined. */
  readonly tuples_refused?: number;
  /** Namespaces of these that the model in force before declared, and this one does not; absent: none. */
  readonly dropped_namespaces?: readonly string[];
  /** The version that it brought back. */
  readonly rolled_back_to?: number;
  /** Present where stored tuples that do not fit were no obstacle. */
  readonly forced?: true;
};

export type AuditRecord = TupleAuditRecord | AdminAuditRecord;

/** Takes records after their commit, those of a shard in seq order, and keeps that order. */
export interface AuditLog {
  write(record: AuditRecord): void;
}

/** Audit records as log lines, whatever the log level is. */
export function createAuditLog(logger: Logger): AuditLog {
  const audit = logger.child({ event: 'audit' }, { level: 'info' });
  return { write: (record) => audit.info(record, 'audit') };
}
