import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { ModelService } from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import type { Instance } from './instance.ts';

type Target = Pick<Instance, 'baseUrl' | 'token' | 'adminSecret'>;
type Answer = { readonly status: number; readonly body: Record<string, unknown> };

/** A POST of JSON to a method of gatehouse.v1, with all credentials; the parsed answer. */
export async function modelCall(
  instance: Target,
  method: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(`${instance.baseUrl}/gatehouse.v1.ModelService/${method}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${instance.token}`,
      'x-admin-secret': instance.adminSecret,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** A Connect client of ModelService, for its streams. */
export function modelClient(instance: Target, httpVersion: '1.1' | '2' = '1.1') {
  const transport = createConnectTransport({
    baseUrl: instance.baseUrl,
    httpVersion,
    interceptors: [
      (next) => (request) => {
        request.header.set('authorization', `Bearer ${instance.token}`);
        request.header.set('x-admin-secret', instance.adminSecret);
        return next(request);
      },
    ],
  });
  return createClient(ModelService, transport);
}

/** A model whose `doc` has these relations. */
export function docModel(relations: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ namespaces: { doc: { relations } } });
}
