import { CredentialsMethod, OpenFgaClient } from '@openfga/sdk';
import { expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { MODEL } from './support.ts';

/* An application that was written for OpenFGA's own client: its address and its token are all that is ours. */

const { instance } = await instanceForFile({ GATEWAY_OPENFGA_API: 'true' });

function clientOf(storeId?: string, authorizationModelId?: string): OpenFgaClient {
  return new OpenFgaClient({
    apiUrl: `${instance.baseUrl}/openfga`,
    ...(storeId === undefined ? {} : { storeId }),
    ...(authorizationModelId === undefined ? {} : { authorizationModelId }),
    credentials: { method: CredentialsMethod.ApiToken, config: { token: instance.token } },
    retryParams: { maxRetry: 0 },
  });
}

const plan = 'Doc/v2:plan';

test('a store, its models, its tuples and what is asked of them', async () => {
  const { id: storeId } = await clientOf().createStore({ name: 'an application' });
  expect(storeId).toMatch(/^[0-9A-Z]{26}$/);
  const client = clientOf(storeId);
  const model = MODEL as Parameters<OpenFgaClient['writeAuthorizationModel']>[0];
  const { authorization_model_id: first } = await client.writeAuthorizationModel(model);
  const pinned = clientOf(storeId, first);
  await pinned.write({
    writes: [
      { user: 'user:anne', relation: 'Owner', object: plan },
      { user: 'group:eng#member', relation: 'viewer', object: plan },
      { user: 'user:bob', relation: 'member', object: 'group:eng' },
    ],
  });
  const asked = [
    ['user:anne', 'Owner', true],
    ['user:anne', 'viewer', true],
    ['user:bob', 'viewer', true],
    ['user:carl', 'viewer', false],
    ['group:eng#member', 'viewer', true],
  ] as const;
  for (const [user, relation, allowed] of asked) {
    expect(await pinned.check({ user, relation, object: plan })).toMatchObject({ allowed });
  }
  const checks = asked.map(([user, relation], at) => ({
    user,
    relation,
    object: plan,
    correlationId: String(at),
  }));
  const { result } = await pinned.batchCheck({ checks });
  expect(result.map(({ allowed }) => allowed)).toEqual(asked.map(([, , allowed]) => allowed));
  expect(
    await pinned.listObjects({ user: 'user:bob', relation: 'viewer', type: 'Doc/v2' }),
  ).toMatchObject({ objects: [plan] });
  const { tuples } = await pinned.read({ object: plan });
  expect(tuples.map(({ key }) => key.user).toSorted()).toEqual(['group:eng#member', 'user:anne']);
  await pinned.deleteTuples([{ user: 'user:bob', relation: 'member', object: 'group:eng' }]);
  expect(await pinned.check({ user: 'user:bob', relation: 'viewer', object: plan })).toMatchObject({
    allowed: false,
  });
  // A second model, under which the application that is not yet upgraded goes on.
  const { authorization_model_id: second } = await client.writeAuthorizationModel(model);
  expect(second).not.toBe(first);
  expect(await pinned.check({ user: 'user:anne', relation: 'viewer', object: plan })).toMatchObject(
    { allowed: true },
  );
  const { authorization_models: models } = await client.readAuthorizationModels();
  expect(models.map(({ id }) => id)).toEqual([second, first]);
});

test('its errors are told as OpenFGA tells them', async () => {
  const { id: storeId } = await clientOf().createStore({ name: 'errors' });
  const client = clientOf(storeId);
  const asked = { user: 'user:anne', relation: 'viewer', object: plan };
  await expect(client.check(asked)).rejects.toMatchObject({
    apiErrorCode: 'latest_authorization_model_not_found',
  });
  await client.writeAuthorizationModel(
    MODEL as Parameters<OpenFgaClient['writeAuthorizationModel']>[0],
  );
  await expect(client.check({ ...asked, relation: 'nothing' })).rejects.toMatchObject({
    apiErrorCode: 'validation_error',
  });
  const twice = { writes: [{ user: 'user:anne', relation: 'Owner', object: plan }] };
  await client.write(twice);
  await expect(client.write(twice)).rejects.toMatchObject({
    apiErrorCode: 'write_failed_due_to_invalid_input',
  });
});
