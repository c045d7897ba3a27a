import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { OutboundChannel } from '../model/notification.ts';
import { invalidField } from './notify-error.ts';

const ADDRESS_MAX = 2_048;
const MAIL = /^[^\s@<>"(),:;[\]\\]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$/;

const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::');
const GLOBAL_UNICAST_BITS = 3;

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

/** Whether an IP address is anything but a public unicast one; false for host names. */
export function isPrivate(host: string): boolean {
  if (isIP(host) === 0) return false;
  // An IPv4 address within an IPv6 one is judged as the former.
  const address = ipaddr.process(host);
  if (address.range() !== 'unicast') return true;
  // All that was ever given out (RFC 4291 §2.4, IANA's registry): 2000::/3.
  return address instanceof ipaddr.IPv6 && !address.match(GLOBAL_UNICAST, GLOBAL_UNICAST_BITS);
}
