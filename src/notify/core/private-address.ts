import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::');
const GLOBAL_UNICAST_BITS = 3;

/** Whether an IP address is anything but a public unicast one; false for host names. */
export function isPrivate(host: string): boolean {
  if (isIP(host) === 0) return false;
  // An IPv4 address within an IPv6 one is judged as the former.
  const address = ipaddr.process(host);
  if (address.range() !== 'unicast') return true;
  // All that was ever given out (RFC 4291 §2.4, IANA's registry): 2000::/3.
  return address instanceof ipaddr.IPv6 && !address.match(GLOBAL_UNICAST, GLOBAL_UNICAST_BITS);
}
