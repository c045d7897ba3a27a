import type { DisturbanceName } from './disturb/disturbances.ts';

/** A fault of the product that the checker must find. Its patch is faults/NAME.patch. */
export type PlantedFault = {
  readonly name: string;
  /** What is left out, and what a caller sees of it. */
  readonly text: string;
  /** What brings it to light; all of them are disturbances of an ordinary run. */
  readonly disturbances: readonly DisturbanceName[];
  readonly instances: number;
};

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    name: 'version-cache-crossed',
    text: 'what was prepared for one version of a model answers queries that name another one',
    disturbances: ['delay'],
    instances: 3,
  },
  {
    name: 'lease-ignored',
    text: 'an instance answers from memory although its lease has ended: after it stood still it does not see what the others wrote',
    disturbances: ['successor'],
    instances: 2,
  },
  {
    name: 'min-seq-dropped',
    text: 'a worker answers at whatever it has applied, not at what the read must see at least',
    disturbances: ['lost-notifications'],
    instances: 2,
  },
  {
    name: 'fencing-off',
    text: 'a write commits although the registration under which it was sent is gone: whoever is alone by then does not hear of it',
    disturbances: ['unregistered'],
    instances: 2,
  },
  {
    name: 'page-cut-in-mid-seq',
    text: 'of a write that is caught up only the first half is applied at first',
    disturbances: ['lost-notifications'],
    instances: 2,
  },
  {
    name: 'query-shared-with-later-read',
    text: 'a read takes the answer of a read index query that was sent before it arrived',
    disturbances: ['delay'],
    instances: 2,
  },
  {
    name: 'upsert-renewal',
    text: 'a renewal makes the row again that others have removed: a fenced instance lives on as if nothing had been',
    disturbances: ['successor', 'pause-others'],
    instances: 2,
  },
  {
    name: 'absent-head-is-zero',
    text: 'a shard of which nothing is remembered is taken for one that was never written',
    disturbances: ['heir'],
    instances: 2,
  },
  {
    name: 'unknown-called-failed',
    text: 'a write whose connection was lost is called not applied',
    disturbances: ['lost-answers', 'cut-commits'],
    instances: 2,
  },
  {
    name: 'resend-unchecked',
    text: 'a write that is sent again is not looked for first, and gets a new id: it is applied twice',
    disturbances: ['lost-answers', 'cut-commits'],
    instances: 2,
  },
  {
    name: 'settings-version-ignored',
    text: 'what the read index says of the settings is not compared: models and suspensions of others are seen late',
    disturbances: [],
    instances: 2,
  },
  {
    name: 'joining-does-not-wait',
    text: 'an instance that joins commits before the one that was alone knows of it',
    disturbances: ['pause-others'],
    instances: 2,
  },
  {
    name: 'forgets-nothing-when-alone',
    text: 'what was known of heads counts on becoming alone, although others wrote meanwhile',
    disturbances: ['heir'],
    instances: 2,
  },
  {
    name: 'token-ignored',
    text: 'a read with a token is answered from what is in memory, wherever that is',
    disturbances: ['lost-notifications'],
    instances: 2,
  },
  {
    name: 'torn-batch',
    text: 'changes are applied between two items of a batch',
    disturbances: [],
    instances: 2,
  },
  {
    name: 'modes-before-lock',
    text: 'what updates ask is looked at before the shard is locked: two inserts of an absent tuple are both acknowledged',
    disturbances: [],
    instances: 2,
  },
  {
    name: 'own-clock',
    text: 'expiry goes by the wall clock of the instance',
    disturbances: ['clock-skew'],
    instances: 2,
  },
];
