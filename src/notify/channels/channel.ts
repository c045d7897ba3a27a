import type { OptionTable, OptionValues } from '../../config/option.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { Channel } from '../model/notification.ts';
import type { Sender } from './sender.ts';

/** What a channel reads of the service's settings, beside its own options. */
export type SharedSettings = { readonly sendTimeoutMs: number };

/** All settings of the service, to be read by the channel whose options are among them. */
export type ChannelSettings = SharedSettings & Readonly<Record<string, unknown>>;

/** How a channel of endpoints sends, once its settings are known. */
export type OpenChannel = {
  readonly sender: Sender;
  /** Attempts in progress at once. */
  readonly sendsMax: number;
};

/** What only channels have that send to endpoints. */
export type OutboundPart = {
  /** Whether an endpoint may serve every user of its tenant. */
  readonly servesTenants: boolean;
  /** Whether an endpoint needs a signing secret. */
  readonly isSigned: boolean;
  /** Returns an address in its canonical form. Errors: FIELD_INVALID naming `field`. */
  readonly checkAddress: (field: string, address: string, settings: ChannelSettings) => string;
  /** Undefined where the settings do not set it up. */
  readonly open: (settings: ChannelSettings, clock: Clock) => OpenChannel | undefined;
};

/** One channel, as its file describes it. A row of registry.ts makes it known to the service. */
export type ChannelDefinition = {
  /** As in notify.v1.Channel, 1 to 15. The store keeps it. */
  readonly number: Channel;
  /** As metrics and errors name it. */
  readonly name: string;
  /** Who carries it: the label of metrics. */
  readonly provider: string;
  /** Its settings, added to those of the service. */
  readonly options: OptionTable;
  /** Undefined for the live channel alone. */
  readonly outbound: OutboundPart | undefined;
};

/** The parts of a channel of endpoints, with its settings in their types. */
export type OutboundDefinition<Table extends OptionTable> = Omit<
  ChannelDefinition,
  'options' | 'outbound'
> & {
  readonly options: Table;
  readonly servesTenants: boolean;
  readonly isSigned: boolean;
  readonly checkAddress: (field: string, address: string, settings: OptionValues<Table>) => string;
  readonly open: (
    settings: OptionValues<Table> & SharedSettings,
    clock: Clock,
  ) => OpenChannel | undefined;
};

/** Defines a channel of endpoints whose functions see its own options by their types. */
export function defineOutbound<Table extends OptionTable>(
  definition: OutboundDefinition<Table>,
): ChannelDefinition {
  const { number, name, provider, options, servesTenants, isSigned } = definition;
  // The service loads the options of every registered channel, so that its own values are among the settings.
  const ownOf = (settings: ChannelSettings) => settings as OptionValues<Table> & SharedSettings;
  return {
    number,
    name,
    provider,
    options,
    outbound: {
      servesTenants,
      isSigned,
      checkAddress: (field, address, settings) =>
        definition.checkAddress(field, address, ownOf(settings)),
      open: (settings, clock) => definition.open(ownOf(settings), clock),
    },
  };
}
