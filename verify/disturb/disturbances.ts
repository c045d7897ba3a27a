import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Place } from '../cluster/cluster.ts';
import type { Random } from '../workload/random.ts';
import type { Recorder } from '../workload/recorder.ts';

/** What one disturbance works on. It puts right what it did before it resolves, but for who is there. */
export type Scene = {
  readonly cluster: Cluster;
  readonly random: Random;
  readonly say: (text: string) => void;
  readonly recorder: Recorder;
};

/** Longer than a lease of an instance (3 s), so that the others fence it. */
const PAST_LEASE_MS = 4_200;
/** Longer than it takes to notice that the others are gone. */
const ALONE_MS = 1_500;
const START_ATTEMPTS_MAX = 5;
const DAY_MS = 86_400_000;

/**
 * Everything that a run does to the processes, by the names that `--faults` takes. One after another, in an
 * order that follows from the seed.
 */
export const DISTURBANCES = {
  join: async (scene) => {
    const free = scene.cluster.places.find((place) => place.process === undefined);
    if (free !== undefined) await join(scene, free);
  },

  leave: async (scene) => {
    const place = pickLeaver(scene);
    if (place === undefined) return;
    scene.say(`${place.index} leaves`);
    await scene.cluster.leave(place, 'SIGTERM');
  },

  /** The others leave, one is alone for a while, and another joins it again. */
  alone: async (scene) => {
    const { cluster, random, say } = scene;
    const [stays, ...leavers] = shuffled(cluster.ready, random);
    if (stays === undefined) return;
    const signal = random.chance(0.7) ? 'SIGTERM' : 'SIGKILL';
    say(`${stays.index} stays alone (${signal} to the others)`);
    silence(cluster, random.chance(0.3));
    await Promise.all(leavers.map((place) => cluster.leave(place, signal)));
    await sleep((signal === 'SIGKILL' ? PAST_LEASE_MS : 500) + random.integer(1_500));
    const free = cluster.places.find((place) => place.process === undefined);
    if (free !== undefined) await join(scene, free);
    await sleep(500);
    silence(cluster, false);
  },

  /**
   * One is alone and stands still past its lease; another comes, takes over and writes; then the first goes on, with
   * all that was sent to it meanwhile.
   */
  successor: async (scene) => {
    const { cluster, random, say } = scene;
    const [first, ...leavers] = shuffled(cluster.ready, random);
    if (first === undefined) return;
    await Promise.all(leavers.map((place) => cluster.leave(place, 'SIGTERM')));
    await sleep(ALONE_MS);
    const isCutOff = random.chance(0.3);
    say(`${first.index}, alone, ${isCutOff ? 'does not reach PostgreSQL' : 'stands still'}`);
    if (isCutOff) first.proxy.freeze(true);
    else cluster.pause(first);
    silence(cluster, random.chance(0.7));
    const next = cluster.places.find((place) => place.process === undefined);
    if (next !== undefined) await join(scene, next);
    await sleep(ALONE_MS + random.integer(800));
    // So that it does things for a while before it is told that it was taken out.
    const farMs = random.pick([60, 200, 400]);
    first.proxy.delay(() => farMs);
    if (isCutOff) first.proxy.freeze(false);
    else cluster.goOn(first);
    say(`${first.index} goes on`);
    await sleep(1_500);
    first.proxy.delay(() => 0);
    silence(cluster, false);
  },

  /**
   * One stands still for less than its lease, hears of nothing, and is left alone meanwhile by all others: what it
   * remembers is from before they wrote.
   */
  heir: async ({ cluster, random, say }) => {
    const [heir, ...others] = shuffled(cluster.ready, random);
    if (heir === undefined || others.length === 0) return;
    say(`${heir.index} stands still and is left alone`);
    heir.isHidden = true;
    heir.proxy.dropNotifications(true);
    await sleep(50);
    cluster.pause(heir);
    await sleep(400);
    // Within the lease of the heir, so that it need not register anew.
    await Promise.all(others.map((place) => cluster.leave(place, 'SIGTERM')));
    cluster.goOn(heir);
    await sleep(30 + random.integer(250));
    heir.isHidden = false;
    await sleep(1_500);
    heir.proxy.dropNotifications(false);
  },

  restart: async (scene) => {
    const place = pickReady(scene);
    if (place === undefined) return;
    scene.say(`${place.index} restarts`);
    await scene.cluster.leave(place, 'SIGTERM');
    await join(scene, place);
  },

  kill: async (scene) => {
    const place = pickReady(scene);
    if (place === undefined) return;
    scene.say(`${place.index} is killed`);
    await scene.cluster.leave(place, 'SIGKILL');
    await sleep(scene.random.integer(2_000));
    await join(scene, place);
  },

  /** Past its lease, so that it wakes up fenced. */
  pause: async ({ cluster, random, say }) => {
    const place = pickReady({ cluster, random });
    if (place === undefined) return;
    say(`${place.index} stands still`);
    cluster.pause(place);
    await sleep(PAST_LEASE_MS + random.integer(1_500));
    cluster.goOn(place);
    say(`${place.index} goes on`);
    await sleep(300);
  },

  /** One goes on, and is alone once the leases of the others have ended; then these wake up, with what was sent to them. */
  'pause-others': async ({ cluster, random, say }) => {
    const [stays, ...others] = shuffled(cluster.ready, random);
    if (stays === undefined) return;
    say(`all but ${stays.index} stand still`);
    silence(cluster, random.chance(0.7));
    for (const place of others) cluster.pause(place);
    await sleep(PAST_LEASE_MS + 500 + random.integer(1_500));
    const farMs = random.pick([0, 60, 200, 400]);
    for (const place of others) place.proxy.delay(() => farMs);
    for (const place of others) cluster.goOn(place);
    say('all go on');
    await sleep(1_500);
    for (const place of others) place.proxy.delay(() => 0);
    silence(cluster, false);
  },

  'short-pause': async ({ cluster, random, say }) => {
    const place = pickReady({ cluster, random });
    if (place === undefined) return;
    say(`${place.index} stands still for a moment`);
    cluster.pause(place);
    await sleep(100 + random.integer(900));
    cluster.goOn(place);
  },

  'postgres-crash': async ({ cluster, say }) => {
    say('PostgreSQL crashes');
    await cluster.postgres.crash();
    await sleep(1_500);
  },

  'postgres-stop': async ({ cluster, random, say }) => {
    say('PostgreSQL stops');
    await cluster.postgres.stop();
    await sleep(500 + random.integer(2_000));
    await cluster.postgres.startAgain();
    say('PostgreSQL is there again');
    await sleep(1_000);
  },

  'postgres-freeze': async ({ cluster, random, say }) => {
    say('PostgreSQL stands still');
    cluster.postgres.freeze();
    await sleep(300 + random.integer(4_500));
    cluster.postgres.thaw();
    say('PostgreSQL goes on');
    await sleep(1_000);
  },

  /**
   * A standby that was cut off a moment ago takes the place of the server, which is lost with what it had acknowledged
   * since. Whoever remembers that must forget it.
   */
  failover: async ({ cluster, random, say, recorder }) => {
    const { postgres } = cluster;
    await postgres.follow();
    const syncedAt = recorder.mark();
    const isAhead = random.chance(0.7);
    if (isAhead) {
      await postgres.cutStandbyOff();
      await sleep(random.integer(400));
    }
    const begun = { client: -1, instance: -1, project: -1, tenant: -1 };
    const ended = recorder.begin(recorder.nextId(), begun);
    say('PostgreSQL fails over');
    for (const { proxy } of cluster.places) proxy.cutAll();
    await postgres.lose();
    const lostAt = recorder.mark();
    await postgres.failOver();
    for (const { proxy } of cluster.places) proxy.leadTo(postgres.target);
    say('the standby serves');
    // Until no instance can answer from memory any more without having seen it.
    await sleep(PAST_LEASE_MS);
    const epoch = await postgres.epoch();
    ended({ action: { kind: 'failover', syncedAt, lostAt, epoch }, outcome: 'ok' });
    say(`epoch ${epoch}`);
  },

  /** One instance does not reach PostgreSQL for longer than its lease; callers reach it. */
  partition: async ({ cluster, random, say }) => {
    const place = pickReady({ cluster, random });
    if (place === undefined) return;
    say(`${place.index} does not reach PostgreSQL`);
    place.proxy.freeze(true);
    await sleep(PAST_LEASE_MS + random.integer(1_500));
    place.proxy.freeze(false);
    say(`${place.index} reaches PostgreSQL again`);
    await sleep(500);
  },

  /**
   * One loses the connection by which it is registered, and no other: its callers' writes still reach PostgreSQL when
   * the others have removed it, and the one that is alone then does not hear of them.
   */
  unregistered: async ({ cluster, random, say }) => {
    const [lost, ...others] = shuffled(cluster.ready, random);
    if (lost === undefined || others.length === 0) return;
    // Of several that stay none is alone.
    const leavers = random.chance(0.7) ? others.slice(1) : [];
    await Promise.all(leavers.map((place) => cluster.leave(place, 'SIGTERM')));
    say(`${lost.index} cannot renew its registration`);
    silence(cluster, random.chance(0.7));
    lost.proxy.endMembers(true);
    await sleep(PAST_LEASE_MS + 800 + random.integer(1_500));
    lost.proxy.endMembers(false);
    say(`${lost.index} can register again`);
    silence(cluster, false);
  },

  'lost-notifications': async ({ cluster, random, say }) => {
    say('notifications are lost');
    silence(cluster, true);
    await sleep(1_500 + random.integer(2_000));
    silence(cluster, false);
  },

  delay: async ({ cluster, random, say }) => {
    const place = pickReady({ cluster, random });
    if (place === undefined) return;
    const mostMs = 5 + random.integer(60);
    say(`${place.index} is up to ${mostMs} ms away from PostgreSQL`);
    place.proxy.delay(() => random.integer(mostMs));
    await sleep(2_000);
    place.proxy.delay(() => 0);
  },

  'cut-commits': async ({ cluster, random, say }) => {
    const place = pickReady({ cluster, random });
    if (place === undefined) return;
    say(`commits of ${place.index} are cut at some byte`);
    for (let i = 0; i < 6; i++) {
      place.proxy.cutCommits('any-byte', 1);
      await sleep(250);
    }
    place.proxy.cutCommits('any-byte', 0);
  },

  'lost-answers': async ({ cluster, random, say }) => {
    const place = pickReady({ cluster, random });
    if (place === undefined) return;
    say(`answers to commits of ${place.index} are lost`);
    for (let i = 0; i < 6; i++) {
      place.proxy.cutCommits('answer', 1);
      await sleep(250);
    }
    place.proxy.cutCommits('answer', 0);
  },

  /** The wall clock of an instance is set, while it runs. */
  'clock-skew': async ({ cluster, random, say }) => {
    const place = pickReady({ cluster, random });
    if (place === undefined) return;
    const skewMs = random.pick([-DAY_MS, -5_000, -700, 700, 5_000, DAY_MS]);
    say(`the clock of ${place.index} is set by ${skewMs} ms`);
    cluster.skew(place, skewMs);
    await sleep(2_500);
    cluster.skew(place, 0);
  },
} as const satisfies Readonly<Record<string, (scene: Scene) => Promise<void>>>;

export type DisturbanceName = keyof typeof DISTURBANCES;
export const DISTURBANCE_NAMES = Object.keys(DISTURBANCES) as readonly DisturbanceName[];

/** Gets a process for every place up to `count`. */
export async function fill(scene: Pick<Scene, 'cluster' | 'say'>, count: number): Promise<void> {
  for (const place of scene.cluster.places.slice(0, count)) {
    if (place.process === undefined) await join(scene, place);
  }
}

async function join({ cluster, say }: Pick<Scene, 'cluster' | 'say'>, place: Place): Promise<void> {
  if (place.process !== undefined) return;
  // One that does not come up in time, as on a machine that is overloaded, is started again, as a supervisor does.
  for (let attempt = 1; ; attempt++) {
    say(`${place.index} joins`);
    try {
      await cluster.join(place);
      say(`${place.index} is ready`);
      return;
    } catch (error) {
      if (attempt === START_ATTEMPTS_MAX || cluster.isEnding) throw error;
      say(
        `${place.index} did not start: ${error instanceof Error ? error.message : String(error)}`,
      );
      await cluster.leave(place, 'SIGKILL');
    }
  }
}

/** Whether notifications get lost on their way to all instances. */
function silence(cluster: Cluster, isOn: boolean): void {
  for (const { proxy } of cluster.places) proxy.dropNotifications(isOn);
}

function pickReady({ cluster, random }: Pick<Scene, 'cluster' | 'random'>): Place | undefined {
  return cluster.ready.length === 0 ? undefined : random.pick(cluster.ready);
}

/** One that is not the last. */
function pickLeaver(scene: Scene): Place | undefined {
  return scene.cluster.ready.length < 2 ? undefined : pickReady(scene);
}

function shuffled<T>(list: readonly T[], random: Random): readonly T[] {
  return list
    .map((value) => ({ value, at: random.fraction() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}
