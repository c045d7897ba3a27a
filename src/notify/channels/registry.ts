import type { OptionTable } from '../../config/option.ts';
import { assert } from '../../shared/assert.ts';
import { type Channel, LIVE_CHANNEL } from '../model/notification.ts';
import type { ChannelDefinition, OutboundPart } from './channel.ts';
import { emailChannel } from './email.ts';
import { webhookChannel } from './webhook.ts';

/** The open streams of users' devices, which notify/live serves. Whether there are any is a setting of the service. */
const liveChannel: ChannelDefinition = {
  number: LIVE_CHANNEL,
  name: 'live',
  provider: 'sse',
  options: {},
  outbound: undefined,
};

/** The store keeps the channels of a notification as bits of a smallint. */
const NUMBER_MAX = 15;

/** A channel that sends to endpoints. */
export type OutboundChannel = ChannelDefinition & { readonly outbound: OutboundPart };

/**
 * The channels of a service. Settings, validation, metrics, dispatchers and answers ask it: no other place lists channels.
 * Numbers and names are unique.
 */
export class ChannelRegistry {
  readonly all: readonly ChannelDefinition[];
  /** The channels that send to endpoints. */
  readonly outbound: readonly OutboundChannel[];
  readonly #byNumber: ReadonlyMap<Channel, ChannelDefinition>;

  constructor(rows: readonly ChannelDefinition[]) {
    this.all = rows.toSorted((a, b) => a.number - b.number);
    this.outbound = this.all.filter(isOutbound);
    this.#byNumber = new Map(rows.map((row) => [row.number, row]));
    assert(this.#byNumber.size === rows.length, 'each channel has a number of its own');
    assert(
      new Set(rows.map(({ name }) => name)).size === rows.length,
      'each channel has a name of its own',
    );
    for (const { number } of rows) {
      assert(
        Number.isInteger(number) && number >= 1 && number <= NUMBER_MAX,
        'a bit of the store for each channel',
      );
    }
  }

  /** The channel of a number; undefined: there is none. O(1). */
  find(number: Channel): ChannelDefinition | undefined {
    return this.#byNumber.get(number);
  }

  /** Does what `find` does, among those that send to endpoints. */
  findOutbound(number: Channel): OutboundChannel | undefined {
    const found = this.#byNumber.get(number);
    return found !== undefined && isOutbound(found) ? found : undefined;
  }

  /** As metrics and errors name a channel that is registered. */
  nameOf(number: Channel): string {
    const found = this.#byNumber.get(number);
    assert(found !== undefined, 'only registered channels are stored');
    return found.name;
  }

  /** The options of all channels. A name that two channels use is a mistake of the second. */
  get options(): OptionTable {
    const entries = this.all.flatMap(({ options }) => Object.entries(options));
    assert(
      new Set(entries.map(([name]) => name)).size === entries.length,
      'each option belongs to one channel',
    );
    return Object.fromEntries(entries);
  }
}

function isOutbound(channel: ChannelDefinition): channel is OutboundChannel {
  return channel.outbound !== undefined;
}

/** The channels that the service has. A new one is a file beside this one, and a row here. */
export const CHANNELS = new ChannelRegistry([liveChannel, webhookChannel, emailChannel]);
