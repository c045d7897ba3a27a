import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../shared/json.ts';
import { objectAt, textAt } from './payload.ts';

/** Above every id that the host gives, and below the numbers that a script cannot hold exactly. */
const MADE_UP_FROM = 1_000_000_000_000_000;
const MADE_UP_COUNT = 1_000_000_000_000_000n;

/** The number of a repository (`owner/name`) that the host did not name: made of the name, the same everywhere. */
export function madeUpRepositoryId(repository: string): number {
  return madeUp(`repository ${repository}`);
}

/** The number of an account, as madeUpRepositoryId. */
export function madeUpAccountId(login: string): number {
  return madeUp(`account ${login}`);
}

/** `repository_id`, `repository_owner_id` and `actor_id`: those of the event if it is about them, else made up. */
export function hostIds(
  event: JsonObject,
  repository: string,
  actor: string,
): Readonly<Record<'repository_id' | 'repository_owner_id' | 'actor_id', string>> {
  const [owner = ''] = repository.split('/');
  const given = objectAt(event, 'repository') ?? {};
  const own = isNamed(textAt(given, 'full_name'), repository) ? given : {};
  return {
    repository_id: String(idIn(own) ?? madeUpRepositoryId(repository)),
    repository_owner_id: String(accountIn(own, 'owner', owner) ?? madeUpAccountId(owner)),
    actor_id: String(accountIn(event, 'sender', actor) ?? madeUpAccountId(actor)),
  };
}

/** One of another name is another account; one without a name is the one in question. */
function accountIn(holder: JsonObject, key: string, login: string): number | undefined {
  const account = objectAt(holder, key);
  if (account === undefined || !isNamed(textAt(account, 'login'), login)) return undefined;
  return idIn(account);
}

/** Names of the host do not differ by case. */
function isNamed(given: string | undefined, name: string): boolean {
  return given === undefined || given.toLowerCase() === name.toLowerCase();
}

function idIn({ id }: JsonObject): number | undefined {
  return typeof id === 'number' && Number.isSafeInteger(id) && id > 0 ? id : undefined;
}

function madeUp(what: string): number {
  const hash = createHash('sha256').update(what.toLowerCase()).digest();
  return MADE_UP_FROM + Number(hash.readBigUInt64BE() % MADE_UP_COUNT);
}
