import { type LoadClient, failureOf } from '../../bench/harness/client.ts';
import { LIST_OBJECTS_PATH } from '../../bench/harness/target.ts';
import { World } from '../../test/support/dataset/world.ts';
import { type Issue, runAtRate, runClosed } from '../harness/arrivals.ts';
import { prepare } from '../harness/prepare.ts';
import type { Scenario } from '../harness/scenario.ts';

const USERS = 100;

/** Users whose lists hold 100 to 1,000 documents, with the sorted answer. */
function listsOf(world: World): { userId: string; answer: string }[] {
  const lists: { userId: string; answer: string }[] = [];
  for (let tries = 0; lists.length < USERS && tries < USERS * 20; tries++) {
    const u = world.random.below(world.users);
    const docs = world.docFolder.flatMap((_, doc) =>
      world.canView(doc, u) ? [World.docId(doc)] : [],
    );
    if (docs.length < 100 || docs.length > 1000) continue;
    // The ids are ASCII, so that the order of UTF-16 units is the byte order of the contract.
    const answer = JSON.stringify({ object_ids: docs.toSorted((a, b) => (a < b ? -1 : 1)) });
    lists.push({ userId: `u${u}`, answer });
  }
  return lists;
}

export const listObjects: Scenario = {
  name: 'list-objects',
  purpose: 'ListObjects answers of 100 to 1,000 documents, every list compared',
  question:
    'How many objects a second are listed, and how long does one list take at half of that?',
  async run(options, start) {
    const { client, open, world, scope } = await prepare(options, start);
    const lists = listsOf(world);
    const bodies = lists.map(({ userId }) =>
      Buffer.from(
        JSON.stringify({ ...scope, namespace: 'doc', relation: 'viewer', subject_user_id: userId }),
      ),
    );
    const issueOn =
      (via: LoadClient): Issue =>
      (index, done) => {
        const i = index % bodies.length;
        via.post(LIST_OBJECTS_PATH, bodies[i] as Buffer, (reply, error) => {
          done(failureOf(reply, error, (body) => body.toString() === lists[i]?.answer));
        });
      };
    const issue = issueOn(client);
    const meanObjects =
      lists.reduce((sum, l) => sum + l.answer.split(',').length, 0) / Math.max(1, lists.length);
    await runClosed({ inFlight: 8, seconds: 2, issue });
    const saturated = await runClosed({ inFlight: 8, seconds: options.seconds / 2, issue });
    const perSecond = options.rate ?? Math.max(1, Math.floor(saturated.perSecond / 2));
    const atRate = await runAtRate({ perSecond, seconds: options.seconds, issue: issueOn(open) });
    await client.close();
    await open.close();
    return { meanObjects, objectsPerSecond: saturated.perSecond * meanObjects, saturated, atRate };
  },
};
