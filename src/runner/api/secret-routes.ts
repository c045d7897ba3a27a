import { AppError } from '../../shared/app-error.ts';
import type { SecretService } from '../secrets/secret-api.ts';
import { emptyAnswer, jsonAnswer, type Answer } from './answer.ts';
import { BodyFields } from './body-fields.ts';
import { parameterOf, type ApiCall } from './call.ts';
import { queryFlag, queryInteger, queryText, queryTime } from './query-fields.ts';
import type { BodyRule, ApiRoute } from './router.ts';

/** The content of an import has at most 1 MiB; as JSON each byte may take six. */
const IMPORT_BODY_BYTES_MAX = 6 * 1024 * 1024 + 65_536;
const IMPORT_LENGTH_MAX = 1024 * 1024;
/** A value has at most 48 KB (of GitHub), which the service checks in bytes; as JSON six times that. */
const VALUE_BODY_BYTES_MAX = 6 * 48 * 1024 + 16_384;
const VALUE_LENGTH_MAX = 1024 * 1024;
const NAME_LENGTH_MAX = 1_000;
const AUDIT_LIMIT_MAX = 1_000;

/** Secrets, variables and their audit. No answer holds the value of a secret. */
export function secretRoutes(secrets: SecretService): readonly ApiRoute[] {
  const json: BodyRule = { kind: 'json', isRequired: true, maxBytes: VALUE_BODY_BYTES_MAX };
  const importJson: BodyRule = { kind: 'json', isRequired: true, maxBytes: IMPORT_BODY_BYTES_MAX };
  const noFields: BodyRule = { kind: 'json', isRequired: false };
  return [
    { method: 'GET', pattern: '/api/secrets', handle: (call) => listSecrets(secrets, call) },
    {
      method: 'PUT',
      pattern: '/api/secrets/:name',
      body: json,
      handle: (call) => putSecret(secrets, call),
    },
    {
      method: 'DELETE',
      pattern: '/api/secrets/:name',
      body: noFields,
      handle: (call) => removeSecret(secrets, call),
    },
    {
      method: 'POST',
      pattern: '/api/secrets/import',
      body: importJson,
      handle: (call) => importEnv(secrets, call),
    },
    {
      method: 'POST',
      pattern: '/api/secrets/sync',
      body: noFields,
      handle: async (call) => {
        new BodyFields(call.json).end();
        return jsonAnswer(200, await secrets.sync(call.actor));
      },
    },
    {
      method: 'GET',
      pattern: '/api/secrets/status',
      handle: async () => jsonAnswer(200, await secrets.status()),
    },
    {
      method: 'GET',
      pattern: '/api/variables',
      handle: async ({ query }) =>
        jsonAnswer(200, await secrets.listVariables(environmentOf(query))),
    },
    {
      method: 'PUT',
      pattern: '/api/variables/:name',
      body: json,
      handle: (call) => putVariable(secrets, call),
    },
    {
      method: 'DELETE',
      pattern: '/api/variables/:name',
      body: noFields,
      handle: async (call) => {
        const { environment } = selectorOf(call, false);
        await secrets.removeVariable({ name: nameOf(call), environment, actor: call.actor });
        return emptyAnswer(204);
      },
    },
    { method: 'GET', pattern: '/api/audit/secrets', handle: (call) => audit(secrets, call) },
  ];
}

async function listSecrets(secrets: SecretService, { query }: ApiCall): Promise<Answer> {
  const environment = environmentOf(query);
  const backend = queryText(query, 'backend');
  const found = queryFlag(query, 'detail')
    ? await secrets.listSecrets(environment, backend)
    : await secrets.listNames(environment, backend);
  return jsonAnswer(200, found);
}

async function putSecret(secrets: SecretService, call: ApiCall): Promise<Answer> {
  const fields = new BodyFields(call.json);
  const request = {
    name: nameOf(call),
    value: valueOf(fields),
    environment: bodyEnvironment(fields),
    backend: fields.text('backend', NAME_LENGTH_MAX),
    actor: call.actor,
  };
  fields.end();
  const { isCreated, secret } = await secrets.put(request);
  return jsonAnswer(isCreated ? 201 : 200, secret);
}

async function removeSecret(secrets: SecretService, call: ApiCall): Promise<Answer> {
  const { environment, backend } = selectorOf(call, true);
  await secrets.remove({ name: nameOf(call), environment, backend, actor: call.actor });
  return emptyAnswer(204);
}

async function importEnv(secrets: SecretService, call: ApiCall): Promise<Answer> {
  const fields = new BodyFields(call.json);
  const content = fields.text('content', IMPORT_LENGTH_MAX);
  if (content === undefined) {
    throw new AppError('INVALID_REQUEST', 'content: is required', { field: 'content' });
  }
  const request = {
    content,
    environment: bodyEnvironment(fields),
    type: fields.choice('type', ['secret', 'variable']),
    backend: fields.text('backend', NAME_LENGTH_MAX),
    isStrict: queryFlag(call.query, 'strict'),
    actor: call.actor,
  };
  fields.end();
  return jsonAnswer(200, await secrets.importEnv(request));
}

async function putVariable(secrets: SecretService, call: ApiCall): Promise<Answer> {
  const fields = new BodyFields(call.json);
  const request = {
    name: nameOf(call),
    value: valueOf(fields),
    environment: bodyEnvironment(fields),
    actor: call.actor,
  };
  fields.end();
  const { isCreated, variable } = await secrets.putVariable(request);
  return jsonAnswer(isCreated ? 201 : 200, variable);
}

async function audit(secrets: SecretService, { query }: ApiCall): Promise<Answer> {
  const records = await secrets.audit({
    limit: queryInteger(query, 'limit', 1, AUDIT_LIMIT_MAX),
    since: queryTime(query, 'since'),
    name: queryText(query, 'name'),
  });
  return jsonAnswer(200, records);
}

function nameOf(call: ApiCall): string {
  return parameterOf(call, 'name');
}

/** The value must be there, and may be empty: whether that is allowed is not for here to say. */
function valueOf(fields: BodyFields): string {
  const value = fields.text('value', VALUE_LENGTH_MAX);
  if (value === undefined) {
    throw new AppError('INVALID_REQUEST', 'value: is required', { field: 'value' });
  }
  return value;
}

/** `environment` and its synonym `env`. */
function bodyEnvironment(fields: BodyFields): string | undefined {
  const environment = fields.text('environment', NAME_LENGTH_MAX);
  return fields.text('env', NAME_LENGTH_MAX) ?? environment;
}

function environmentOf(query: URLSearchParams): string | undefined {
  return queryText(query, 'env') ?? queryText(query, 'environment');
}

/** What a DELETE selects: in the query, or in the body as with PUT. */
function selectorOf(
  call: ApiCall,
  hasBackend: boolean,
): { readonly environment: string | undefined; readonly backend: string | undefined } {
  const fields = new BodyFields(call.json);
  const environment = environmentOf(call.query) ?? bodyEnvironment(fields);
  const given = hasBackend ? fields.text('backend', NAME_LENGTH_MAX) : undefined;
  const backend = hasBackend ? (queryText(call.query, 'backend') ?? given) : undefined;
  // Both may be given; the query wins, the body's are known all the same.
  bodyEnvironment(fields);
  fields.end();
  return { environment, backend };
}
