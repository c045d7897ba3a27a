import { expect } from 'vitest';
import type { Instance } from './instance.ts';
import { call } from './service.ts';

export type Body = Readonly<Record<string, unknown>>;
type Answer = { readonly status: number; readonly body: Record<string, unknown> };

type Target = Pick<Instance, 'baseUrl' | 'token' | 'adminSecret'> & { readonly projectId?: string };

/** Calls to the management services of one tenant, through HTTP. */
export class Tenant {
  readonly #instance: Target;
  readonly scope: { readonly project_id: string; readonly tenant_id: string };

  constructor(instance: Target, tenantId: string, projectId = instance.projectId ?? '') {
    this.#instance = instance;
    this.scope = { project_id: projectId, tenant_id: tenantId };
  }

  /** Any method, for example `WorkspaceService/AddMember`; '' as user leaves out the acting user. */
  async call(user: string, method: string, body: Body = {}): Promise<Answer> {
    const acting = user === '' ? {} : { acting_user_id: user };
    return await call(this.#instance, method, { ...this.scope, ...acting, ...body });
  }

  /** As `call`, of WorkspaceService; the answer must be a success. */
  async do(user: string, method: string, body: Body = {}): Promise<Record<string, unknown>> {
    const answer = await this.call(user, `WorkspaceService/${method}`, body);
    expect([answer.status, answer.body], method).toEqual([200, answer.body]);
    return answer.body;
  }

  /** Of WorkspaceService: the code and the reason with which it is refused. */
  async refusal(user: string, method: string, body: Body = {}): Promise<string> {
    const { status, body: error } = await this.call(user, `WorkspaceService/${method}`, body);
    return status === 200 ? 'ok' : `${String(error['code'])} ${reasonOf(error)}`;
  }

  /** Makes a TEAM workspace; its id. */
  async team(owner: string, displayName = 'Team'): Promise<string> {
    const { workspace } = await this.do(owner, 'CreateWorkspace', { display_name: displayName });
    return (workspace as { id: string }).id;
  }

  /** Whether the user holds `relation` on the workspace. */
  async holds(user: string, workspaceId: string, relation: string): Promise<boolean> {
    const { status, body } = await call(this.#instance, 'AuthzService/Check', {
      ...this.scope,
      namespace: 'workspace',
      object_id: workspaceId,
      relation,
      subject_user_id: user,
    });
    expect(status).toBe(200);
    return body['allowed'] as boolean;
  }

  /** Stored tuples as text, sorted, of the whole tenant or those that match. */
  async tuples(filter: Body = {}): Promise<string[]> {
    const { status, body } = await call(this.#instance, 'AuthzService/ReadRelationTuples', {
      ...this.scope,
      ...filter,
    });
    expect(status).toBe(200);
    return (body['tuples'] as StoredTuple[])
      .map(({ namespace, object_id, relation, subject }) => {
        const { user_id: userId, set } = subject;
        const of = set && `${set.namespace}:${set.object_id}#${set.relation}`;
        return `${namespace}:${object_id}#${relation}@${userId ?? of ?? '*'}`;
      })
      .sort();
  }

  /** Writes tuples by hand, each `namespace:id#relation@user` or `…@namespace:id#relation`. */
  async write(...texts: readonly string[]): Promise<void> {
    const updates = texts.map((text) => ({ op: 'OP_INSERT', tuple: tupleOf(text) }));
    const { status } = await this.call('', 'AuthzService/WriteRelationTuples', { updates });
    expect(status).toBe(200);
  }
}

type StoredTuple = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject: {
    readonly user_id?: string;
    readonly set?: { namespace: string; object_id: string; relation: string };
  };
};

/** The reason of an error body. */
export function reasonOf(body: Record<string, unknown>): string {
  const [detail] = body['details'] as { debug: { reason: string } }[];
  return detail?.debug.reason ?? '';
}

function tupleOf(text: string): Body {
  const [object = '', subject = ''] = text.split('@');
  const [node = '', relation] = object.split('#');
  const [namespace, objectId] = node.split(':');
  const [setNode = '', setRelation] = subject.split('#');
  const [setNamespace, setId] = setNode.split(':');
  const isSet = setId !== undefined;
  return {
    namespace,
    object_id: objectId,
    relation,
    subject: isSet
      ? { set: { namespace: setNamespace, object_id: setId, relation: setRelation ?? '' } }
      : { user_id: subject },
  };
}
