/** Objects of ListObjects over HTTP JSON, lists of 100 to 1,000; with directories of other checkouts these take turns. */
import { World } from '../test/support/dataset/world.ts';
import { withCleanup } from './harness/cleanup.ts';
import { contestantsOf, SCOPE, startFilled, worldOf } from './harness/filled-service.ts';
import { Generator, jsonBodies } from './harness/generator.ts';
import { inTurns } from './harness/in-turns.ts';
import { report } from './harness/options.ts';
import { LIST_OBJECTS_PATH } from './harness/target.ts';

const CALLERS = 8;
const LISTS = 100;
const [OBJECTS_MIN, OBJECTS_MAX] = [100, 1_000];

const world = worldOf();
const lists: { body: object; answer: string; objects: number }[] = [];
for (let user = 0; user < world.users && lists.length < LISTS; user++) {
  const ids = world.docFolder.flatMap((_, doc) =>
    world.canView(doc, user) ? [World.docId(doc)] : [],
  );
  if (ids.length < OBJECTS_MIN || ids.length > OBJECTS_MAX) continue;
  lists.push({
    body: { ...SCOPE, namespace: 'doc', relation: 'viewer', subject_user_id: `u${user}` },
    answer: JSON.stringify({ object_ids: ids.toSorted((a, b) => (a < b ? -1 : 1)) }),
    objects: ids.length,
  });
}

if (lists.length === 0) throw new Error('no user has so many documents at this scale');

await withCleanup(async () => {
  const generator = new Generator();
  const services = await startFilled(
    world,
    lists.map((list) => ({ path: LIST_OBJECTS_PATH, ...list })),
  );
  const [{ token } = { token: '' }] = services.map(({ service }) => service);
  const load = {
    protocol: 'http1',
    path: LIST_OBJECTS_PATH,
    bodies: jsonBodies(lists.map(({ body }) => body)),
    operations: lists.map(({ objects }) => objects),
    callers: CALLERS,
  } as const;
  const contestants = contestantsOf(generator, services, load, token);
  for (const row of await inTurns(contestants)) report({ load: 'objects', ...row });
});
