import type { Instance } from '../support/instance.ts';

/** An answer of OpenFGA's API. */
export type DoorAnswer = { readonly status: number; readonly body: DoorBody };

/** Members of answers; which there are is for the test to know. */
type DoorBody = {
  readonly id: string;
  readonly code: string;
  readonly message: string;
  readonly allowed: boolean;
  readonly result: object;
  readonly objects: readonly string[];
  readonly stores: readonly { readonly id: string }[];
  readonly tuples: readonly { readonly key: object; readonly timestamp: string }[];
  readonly authorization_model: object;
  readonly authorization_model_id: string;
  readonly authorization_models: readonly { readonly id: string }[];
  readonly continuation_token: string;
};

/** Sends a request to the API; `body` is JSON, a string as it is. */
export async function door(
  instance: Pick<Instance, 'baseUrl' | 'token'>,
  method: string,
  path: string,
  body?: unknown,
): Promise<DoorAnswer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${instance.baseUrl}/openfga${path}`, {
    method,
    headers: { authorization: `Bearer ${instance.token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: text }),
  });
  const answer = await response.text();
  const found = (answer === '' ? {} : JSON.parse(answer)) as DoorBody;
  return { status: response.status, body: found };
}

const this_ = { this: {} };
const types = (...all: object[]): object => ({ directly_related_user_types: all });

/** Documents below folders, groups, a condition, and names that may not stand in a model here. */
export const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'group',
      relations: { member: this_ },
      metadata: {
        relations: { member: types({ type: 'user' }, { type: 'group', relation: 'member' }) },
      },
    },
    {
      type: 'Doc/v2',
      relations: {
        Owner: this_,
        blocked: this_,
        viewer: {
          difference: {
            base: { union: { child: [this_, { computedUserset: { relation: 'Owner' } }] } },
            subtract: { computedUserset: { relation: 'blocked' } },
          },
        },
      },
      metadata: {
        relations: {
          Owner: types({ type: 'user' }),
          blocked: types({ type: 'user' }),
          viewer: types(
            { type: 'user' },
            { type: 'user', wildcard: {} },
            { type: 'group', relation: 'member' },
            { type: 'user', condition: 'On_Time' },
          ),
        },
      },
    },
  ],
  conditions: {
    On_Time: {
      name: 'On_Time',
      expression: 'hour < limit',
      parameters: { hour: { type_name: 'TYPE_NAME_INT' }, limit: { type_name: 'TYPE_NAME_INT' } },
    },
  },
};

/** A tuple key. */
export function key(user: string, relation: string, object: string): Record<string, unknown> {
  return { user, relation, object };
}
