import { usage } from '../../command-line/parse-words.ts';
import type { CliLine } from '../core/command.ts';
import type { ServiceConnection } from '../core/connection.ts';
import { type SubjectJson, subjectOfText } from '../core/tuple-json.ts';

/** A `gatehouse.v1.TupleFilter` in JSON. */
export type FilterJson = {
  readonly namespace?: string;
  readonly object_id?: string;
  readonly relation?: string;
  readonly subject?: SubjectJson;
};

/** Options of a filter. */
export const FILTER_NAMES = ['namespace', 'object', 'relation', 'subject'] as const;

/**
 * The filter in the options. Refuses an empty text: an id that is empty by mistake would widen the
 * filter. Errors: INVALID_REQUEST naming the option.
 */
export function filterOf(line: CliLine): FilterJson {
  const empty = FILTER_NAMES.find((option) => line.text(option) === '');
  if (empty !== undefined) throw usage(`--${empty}: is empty`);
  const [namespace, object, relation] = [
    line.text('namespace'),
    line.text('object'),
    line.text('relation'),
  ];
  if (object !== undefined && namespace === undefined) {
    throw usage('--object: needs --namespace, and is the id alone: --namespace doc --object plan');
  }
  const subject = line.text('subject');
  return {
    ...(namespace === undefined ? {} : { namespace }),
    ...(object === undefined ? {} : { object_id: object }),
    ...(relation === undefined ? {} : { relation }),
    ...(subject === undefined ? {} : { subject: subjectOption(subject) }),
  };
}

function subjectOption(text: string): SubjectJson {
  try {
    return subjectOfText(text);
  } catch (error) {
    throw usage(`--subject: ${(error as Error).message}`);
  }
}

/**
 * The connection for the requested scope: without a tenant for `--all-tenants`. Errors:
 * INVALID_REQUEST.
 */
export function placeOf(line: CliLine, connection: ServiceConnection): ServiceConnection {
  if (!line.isSet('all-tenants')) return connection;
  if (line.isSet('tenant')) throw usage('--all-tenants: excludes --tenant');
  return { ...connection, tenant: '' };
}

/**
 * Project, tenant and filter, as parameters of `GET /v1/tuples` and `GET /v1/watch`. Errors:
 * INVALID_REQUEST.
 */
export function queryOf(line: CliLine, { project, tenant }: ServiceConnection): URLSearchParams {
  const { subject, ...texts } = filterOf(line);
  const query = new URLSearchParams(texts);
  if (project !== '') query.set('project_id', project);
  if (tenant !== '') query.set('tenant_id', tenant);
  if (line.isSet('all-tenants')) query.set('all_tenants', 'true');
  if (subject === undefined) return query;
  if ('user_id' in subject) query.set('subject_user_id', subject.user_id);
  else if ('wildcard' in subject) query.set('subject_wildcard', 'true');
  else if ('wildcard_of' in subject) query.set('subject_wildcard_of', subject.wildcard_of);
  else {
    query.set('subject_namespace', subject.set.namespace);
    query.set('subject_object_id', subject.set.object_id);
    query.set('subject_relation', subject.set.relation ?? '');
  }
  return query;
}
