import type { OpenFgaStore } from '../../services/openfga/openfga-stores.ts';
import { mustAdmit } from '../callers/guarded-service.ts';
import { STORE_RULES } from '../callers/method-rules.ts';
import { type DoorAnswer, type DoorCall, ulidAt } from './door-call.ts';
import { DoorError, invalid, storeNotFound } from './door-error.ts';
import { invalidPageToken, pageSizeOf, textOf } from './door-json.ts';

const NAME = /^[a-zA-Z0-9\s.\-/^_&@]{3,64}$/;
const LIST_SCOPE = 'stores';

/** POST /stores. */
export async function createStore(call: DoorCall): Promise<DoorAnswer> {
  const { parts, credential } = call;
  mustAdmit(credential, STORE_RULES.create, undefined, parts.onOutOfScope);
  const name = textOf(call.body, 'name');
  if (!NAME.test(name)) {
    const text = `value does not match regex pattern ${JSON.stringify(NAME.source)}`;
    throw invalid(`invalid CreateStoreRequest.Name: ${text}`);
  }
  const store = await parts.stores.create(name, authorOf(call));
  return { status: 201, body: storeJson(store) };
}

/** GET /stores: those that the caller made. */
export async function listStores(call: DoorCall): Promise<DoorAnswer> {
  const { parts, credential, query } = call;
  mustAdmit(credential, STORE_RULES.list, undefined, parts.onOutOfScope);
  const size = pageSizeOf(query.get('page_size') ?? undefined);
  const name = query.get('name') ?? '';
  const scope = `${LIST_SCOPE}\n${credential.caller.name}\n${name}`;
  const token = query.get('continuation_token') ?? '';
  const from = token === '' ? '' : textOfCursor(parts.stores.cursors.decode(scope, token));
  const found = await parts.stores.list(credential.caller.name, name, from, size + 1);
  const stores = found.slice(0, size);
  const last = stores.at(-1);
  const hasMore = found.length > size && last !== undefined;
  const next = hasMore ? parts.stores.cursors.encode(scope, [last.id]) : '';
  return { status: 200, body: { stores: stores.map(storeJson), continuation_token: next } };
}

/** GET /stores/:store, of one that the caller made. */
export async function getStore(call: DoorCall, storeId: string): Promise<DoorAnswer> {
  const { parts, credential } = call;
  mustAdmit(credential, STORE_RULES.list, undefined, parts.onOutOfScope);
  const store = await ownStore(call, storeId);
  if (store === undefined) throw storeNotFound();
  return { status: 200, body: storeJson(store) };
}

/** DELETE /stores/:store. A store outside the caller's scope is treated as absent: nothing is done. */
export async function deleteStore(call: DoorCall, storeId: string): Promise<DoorAnswer> {
  const { parts, credential } = call;
  mustAdmit(credential, STORE_RULES.delete, undefined, parts.onOutOfScope);
  if (!credential.caller.scopes.isClassNamed(STORE_RULES.delete)) {
    const text = "the caller's scopes must name the class of methods `stores` to delete a store";
    throw new DoorError(403, 'forbidden', text);
  }
  const store = await ownStore(call, storeId);
  if (store !== undefined) await parts.stores.delete(store, authorOf(call));
  return { status: 204, body: undefined };
}

async function ownStore(
  { parts, credential }: DoorCall,
  storeId: string,
): Promise<OpenFgaStore | undefined> {
  const store = await parts.stores.store(ulidAt('StoreId', storeId));
  return store?.createdBy === credential.caller.name ? store : undefined;
}

function authorOf({ credential, requestId }: DoorCall): { caller: string; requestId: string } {
  return { caller: credential.caller.name, requestId };
}

function storeJson({ id, name, createdAtUs, updatedAtUs }: OpenFgaStore): object {
  return { id, name, created_at: timeOf(createdAtUs), updated_at: timeOf(updatedAtUs) };
}

/** RFC 3339 of microseconds since 1970. */
export function timeOf(us: number): string {
  const milliseconds = Math.floor(us / 1_000);
  const rest = String(us % 1_000).padStart(3, '0');
  return new Date(milliseconds).toISOString().replace('Z', `${rest}Z`);
}

function textOfCursor(fields: readonly unknown[] | undefined): string {
  const [text] = fields ?? [];
  if (typeof text !== 'string') throw invalidPageToken();
  return text;
}
