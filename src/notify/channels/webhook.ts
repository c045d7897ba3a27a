import { booleanOption, integerOption, type OptionTable } from '../../config/option.ts';
import { isRefusedHost } from '../core/refused-host.ts';
import { invalidField } from '../model/reasons.ts';
import { defineOutbound } from './channel.ts';
import { WebhookSender } from './webhook-sender.ts';

const OPTIONS = {
  sendsMax: integerOption({
    env: 'NOTIFY_SENDS_MAX',
    description: 'Attempts to deliver to webhooks in progress at once.',
    fallback: 128,
    min: 1,
    max: 1_000,
  }),
  webhookPrivate: booleanOption({
    env: 'NOTIFY_WEBHOOK_ALLOW_PRIVATE',
    description:
      'Whether webhooks may go to loopback, private and link-local addresses, those of cloud metadata services excepted. Leave it off where tenants choose the addresses.',
    fallback: false,
  }),
} as const satisfies OptionTable;

/** A signed POST to each webhook endpoint of the user or tenant. */
export const webhookChannel = defineOutbound({
  number: 2,
  name: 'webhook',
  provider: 'http',
  options: OPTIONS,
  servesTenants: true,
  isSigned: true,
  checkAddress: (field, address, { webhookPrivate }) => checkedUrl(field, address, webhookPrivate),
  open: ({ sendsMax, webhookPrivate }, clock) => ({
    sendsMax,
    sender: new WebhookSender({
      clock,
      allowsPrivate: webhookPrivate,
      // Endpoints are bounded each; many may lie on one host.
      connectionsPerHostMax: sendsMax,
    }),
  }),
});

/** A host name may still resolve to a private address later: webhook-sender.ts looks again. */
function checkedUrl(field: string, address: string, allowsPrivate: boolean): string {
  // The parser drops some of them without a word.
  if (/\p{Cc}/u.test(address) || !address.isWellFormed()) {
    throw invalidField(field, 'must be well-formed text without control characters');
  }
  const url = URL.parse(address);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw invalidField(field, 'must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidField(field, 'must not carry a user or password');
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isRefusedHost(host, allowsPrivate)) {
    const problem = 'must not be a loopback, private, link-local or cloud metadata address';
    // Of metadata services it is true in any case.
    const isPrivateOnly = !isRefusedHost(host, true);
    const hint =
      '; NOTIFY_WEBHOOK_ALLOW_PRIVATE=true admits those of this machine and of private networks';
    throw invalidField(field, isPrivateOnly ? `${problem}${hint}` : problem);
  }
  url.hash = '';
  return url.href;
}
