import { isPrivate } from '../core/private-address.ts';
import type { OutboundChannel } from '../model/notification.ts';
import { invalidField } from './notify-error.ts';

const ADDRESS_MAX = 2_048;
const MAIL = /^[^\s@<>"(),:;[\]\\]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$/;

/**
 * The address of an endpoint in its canonical form. Errors: FIELD_INVALID for endpoint.address. A host
 * name may still resolve to a private address later: channels/webhook-sender.ts looks again.
 */
export function checkedAddress(
  channel: OutboundChannel,
  address: string,
  allowsPrivate: boolean,
): string {
  const field = 'endpoint.address';
  if (address.length > ADDRESS_MAX) throw invalidField(field, `at most ${ADDRESS_MAX} characters`);
  if (channel === 'email') {
    if (!MAIL.test(address)) throw invalidField(field, 'must be a mail address');
    return address;
  }
  const url = URL.parse(address);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw invalidField(field, 'must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidField(field, 'must not carry a user or password');
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (!allowsPrivate && (host === 'localhost' || host.endsWith('.localhost') || isPrivate(host))) {
    throw invalidField(field, 'must not be a loopback, private or link-local address');
  }
  url.hash = '';
  return url.href;
}
