import type { Instance } from './instance.ts';

/** What a method answered. */
export type QueryAnswer = { readonly status: number; readonly body: Record<string, unknown> };

/** A POST of JSON to a method of `gatehouse.v1.QueryService`, with the service token. */
export async function query(
  instance: Pick<Instance, 'baseUrl' | 'token'>,
  method: string,
  body: unknown,
): Promise<QueryAnswer> {
  const response = await fetch(`${instance.baseUrl}/gatehouse.v1.QueryService/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${instance.token}` },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const parsed = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  return { status: response.status, body: parsed };
}
