import {
  type DescMethod,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  toJson,
} from '@bufbuild/protobuf';
import { timestampFromMs, TimestampSchema } from '@bufbuild/protobuf/wkt';

/** Where a request goes. */
export type Target = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly allTenants: boolean;
};

/** What ids of a shard are made of: whoever reads one knows which shard it is of. */
export function markOf({ projectId, tenantId }: Pick<Target, 'projectId' | 'tenantId'>): string {
  return `mark-${projectId}-${tenantId === '' ? 'none' : tenantId}-`;
}

const TOMORROW = toJson(TimestampSchema, timestampFromMs(Date.now() + 86_400_000));

/**
 * A request of a method that goes to `target` and is valid as far as this can be said without what is stored: by the names of fields, which
 * mean the same in all messages of the contracts.
 */
export function requestTo(method: DescMethod, target: Target, ids: JsonObject): JsonObject {
  const { projectId: project_id, tenantId: tenant_id } = target;
  const subject = { user_id: 'alice' };
  const object = { namespace: 'resource', object_id: `${markOf(target)}new`, relation: 'viewer' };
  const tuple = { ...object, subject, expires_at: TOMORROW };
  const question = { ...object, subject };
  const values: Readonly<Record<string, JsonValue>> = {
    project_id,
    tenant_id,
    ...(target.allTenants ? { all_tenants: true } : {}),
    scope: { project_id, tenant_id },
    id: project_id,
    name: 'changed',
    acting_user_id: 'alice',
    user_id: 'bob',
    new_owner_user_id: 'bob',
    subject_user_id: 'alice',
    ...object,
    object_ids: [object.object_id],
    relations: ['viewer'],
    items: method.parent.typeName.startsWith('gatehouse')
      ? [{ question }]
      : [{ ...object, subject_user_id: 'alice' }],
    question,
    subject,
    updates: [{ op: 'OP_INSERT', tuple }],
    questions: questionsOf(method, question),
    tuples: [tuple],
    options: { project_id, tenant_id, import_id: 'one' },
    filter: { namespace: 'resource' },
    count_max: '1000000',
    display_name: `${markOf(target)}name`,
    role: 'ROLE_MEMBER',
    email: 'bob@example.com',
    token: 'none',
    state: 'ENROLLMENT_STATE_ENROLLED',
    member: subject,
    sku: 'pro',
    limit: 1,
    version: '1',
    model: { json: '{}' },
    files: [{ name: 'a.yaml', text: 'model: {}' }],
    ...ids,
  };
  const request: JsonObject = {};
  for (const { name } of method.input.fields) {
    const value = values[name];
    if (value !== undefined) request[name] = value;
  }
  return request;
}

function questionsOf(method: DescMethod, question: JsonObject): JsonValue {
  return method.name === 'PreviewModel' ? { sampled: 10 } : [question];
}

/** The request as the message that it is; fields that do not fit are left out. */
export function messageOf(method: DescMethod, json: JsonObject): Message {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(json)) {
    try {
      fromJson(method.input, { [name]: value }, { ignoreUnknownFields: true });
      kept[name] = value;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
    }
  }
  return fromJson(method.input, kept, { ignoreUnknownFields: true });
}
