import { type PackedChange, parsePackedChanges } from '../../model/packed-changes.ts';
import { WILDCARD_NAMESPACE } from '../../model/relation-tuple.ts';
import type { AuditSink, TupleAudit, WrittenModel } from '../../services/ports.ts';
import type { AdminAuditRecord, AuditLog, TupleAuditRecord } from './audit-log.ts';

/** Writes what the services changed as audit records, one for each change. */
export function createAuditSink(log: AuditLog): AuditSink {
  return {
    tuplesChanged(entries) {
      for (const entry of entries) {
        parsePackedChanges(entry.changes).forEach((change, index) => {
          log.write(tupleRecord(entry, change, (entry.firstOrdinal ?? 0) + index));
        });
      }
    },
    projectChanged(entry) {
      log.write({
        kind: 'admin_action',
        operation: entry.operation,
        project_id: entry.projectId,
        by: entry.by,
        ...callerOf(entry),
        rpc: entry.rpc,
        request_id: entry.requestId,
        at: new Date(entry.atMs).toISOString(),
        ...(entry.model === undefined ? {} : modelFields(entry.model)),
      });
    },
  };
}

function modelFields(model: WrittenModel): Partial<AdminAuditRecord> {
  const { droppedNamespaces = [] } = model;
  return {
    model_version: model.version,
    model_sha256: model.sha256,
    model_state: model.state,
    ...(model.tuplesRefused === undefined ? {} : { tuples_refused: model.tuplesRefused }),
    ...(droppedNamespaces.length === 0 ? {} : { dropped_namespaces: droppedNamespaces }),
    ...(model.rolledBackTo === 0 ? {} : { rolled_back_to: model.rolledBackTo }),
    ...(model.forced ? { forced: true } : {}),
  };
}

function tupleRecord(entry: TupleAudit, change: PackedChange, ordinal: number): TupleAuditRecord {
  const [op, namespace, objectId, relation, subjectNamespace, subjectId, subjectRelation] = change;
  return {
    kind: 'tuple_operation',
    operation: op === 1 ? 'insert' : 'delete',
    project_id: entry.projectId,
    tenant_id: entry.tenantId,
    seq: entry.revision,
    ordinal,
    namespace,
    object_id: objectId,
    relation,
    subject: subjectText(subjectNamespace, subjectId, subjectRelation),
    rpc: entry.rpc,
    ...(entry.actingUserId === null ? {} : { acting_user_id: entry.actingUserId }),
    ...callerOf(entry),
    request_id: entry.requestId,
    at: new Date(entry.atMs).toISOString(),
  };
}

function callerOf({ caller }: { readonly caller?: string | undefined }): {
  readonly caller?: string;
} {
  return caller === undefined ? {} : { caller };
}

function subjectText(namespace: string, id: string, relation: string): string {
  if (namespace === '') return `user:${id}`;
  if (namespace === WILDCARD_NAMESPACE) return id === '' ? '*' : `${id}:*`;
  return `${namespace}:${id}#${relation}`;
}
