import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { withoutTrailing } from '../../shared/text/without-trailing.ts';

const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::');
const GLOBAL_UNICAST_BITS = 3;

/** Whether an IP address is anything but a public unicast one; false for host names. */
function isPrivate(host: string): boolean {
  if (isIP(host) === 0) return false;
  // An IPv4 address within an IPv6 one is judged as the former.
  const address = ipaddr.process(host);
  if (address.range() !== 'unicast') return true;
  // All that was ever given out (RFC 4291 §2.4, IANA's registry): 2000::/3.
  return address instanceof ipaddr.IPv6 && !address.match(GLOBAL_UNICAST, GLOBAL_UNICAST_BITS);
}

/**
 * Where clouds serve the credentials of a machine, a task or a pod, as their documentation names it: AWS, Google
 * Cloud, Azure (whose own is a public address), Alibaba, Oracle, and what adopted the first one's address.
 */
const METADATA_ADDRESSES: ReadonlySet<string> = new Set([
  '169.254.169.254',
  '169.254.169.253',
  '169.254.170.2',
  '169.254.170.23',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd00:ec2::253',
  'fd00:ec2::23',
  'fd20:ce::254',
]);
const METADATA_NAMES: ReadonlySet<string> = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.tencentyun.com',
  'metadata.azure.internal',
  'metadata.platformequinix.com',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** Offsets at which an IPv6 address may carry an IPv4 one: NAT64 and compatible forms, 6to4. */
const EMBEDDED_AT = [12, 2];
const NAT64 = [ipaddr.IPv6.parse('64:ff9b::'), 32] as const;
const COMPATIBLE = [ipaddr.IPv6.parse('::'), 96] as const;
const SIX_TO_FOUR = [ipaddr.IPv6.parse('2002::'), 16] as const;

/**
 * Whether webhooks may not go to `host`, a host name or an address without brackets: the metadata service of a cloud
 * never, in any spelling; this machine and private networks only where `allowsPrivate`. A name may still resolve to
 * such an address: ask again with what it resolved to.
 */
export function isRefusedHost(host: string, allowsPrivate: boolean): boolean {
  const name = withoutTrailing(host.toLowerCase(), '.');
  if (isMetadata(name)) return true;
  if (allowsPrivate) return false;
  return name === 'localhost' || name.endsWith('.localhost') || isPrivate(name);
}

function isMetadata(name: string): boolean {
  if (isIP(name) === 0) return METADATA_NAMES.has(name);
  const address = ipaddr.process(name);
  if (METADATA_ADDRESSES.has(address.toString())) return true;
  if (address instanceof ipaddr.IPv4) return false;
  const isCarrier = [NAT64, COMPATIBLE, SIX_TO_FOUR].some(([prefix, bits]) =>
    address.match(prefix, bits),
  );
  if (!isCarrier) return false;
  const bytes = address.toByteArray();
  return EMBEDDED_AT.some((at) => METADATA_ADDRESSES.has(bytes.slice(at, at + 4).join('.')));
}
