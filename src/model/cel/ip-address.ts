import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = readonly [address: Address, prefixBits: number];

/**
 * Parses an address: four decimal parts without leading zeros, or IPv6 without a zone. Mapped IPv6 becomes IPv4.
 * Undefined for any other text.
 */
export function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  if (!text.includes(':') || text.includes('%') || !ipaddr.IPv6.isValid(text)) return undefined;
  if (
    text.includes('.') &&
    !ipaddr.IPv4.isValidFourPartDecimal(text.slice(text.lastIndexOf(':') + 1))
  ) {
    return undefined;
  }
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

const PREFIX = /^(?:0|[1-9][0-9]{0,2})$/;
const MAPPED_PREFIX_BITS = 96;

/**
 * Parses a CIDR; undefined for any other text. Bits beyond the prefix are ignored. A mapped network of /96 and longer
 * becomes IPv4.
 */
export function parseCidr(text: string): Network | undefined {
  const slash = text.indexOf('/');
  if (slash < 0 || !PREFIX.test(text.slice(slash + 1))) return undefined;
  const host = text.slice(0, slash);
  let prefixBits = Number(text.slice(slash + 1));
  const address = parseAddress(host);
  if (address === undefined) return undefined;
  if (address.kind() === 'ipv4' && host.includes(':')) {
    if (prefixBits > 128) return undefined;
    if (prefixBits < MAPPED_PREFIX_BITS) return [ipaddr.IPv6.parse(host), prefixBits];
    prefixBits -= MAPPED_PREFIX_BITS;
  }
  return prefixBits > (address.kind() === 'ipv4' ? 32 : 128) ? undefined : [address, prefixBits];
}

/** Whether a network contains an address of its own family. */
export function isInNetwork(address: Address, [network, prefixBits]: Network): boolean {
  return network.kind() === address.kind() && address.match(network, prefixBits);
}
