import ipaddr from 'ipaddr.js';
import { compareInstants, parseInstant, type Instant } from './instant.ts';

/** Outcomes of a condition. Undecided: unknown name, missing input or ill-typed value. */
export const CONDITION_FALSE = 0;
export const CONDITION_TRUE = 1;
export const CONDITION_UNDECIDED = 2;
export type ConditionOutcome = 0 | 1 | 2;

/** A request's context; own properties only. */
export type ConditionContext = { readonly [key: string]: unknown };

/** A condition bound to its static parameters. Pure; cost O(parameters + context values read). */
export type PreparedCondition = (context: ConditionContext) => ConditionOutcome;

type Parameters = { readonly [key: string]: unknown };
type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = readonly [address: Address, prefixBits: number];

const undecided: PreparedCondition = () => CONDITION_UNDECIDED;
const EMPTY: ConditionContext = Object.freeze(Object.create(null)) as ConditionContext;

const PREPARERS: ReadonlyMap<string, (params: Parameters) => PreparedCondition> = new Map([
  ['consent_granted', prepareConsentGranted],
  ['age_at_least', prepareAgeAtLeast],
  ['ip_in_cidrs', prepareIpInCidrs],
  ['not_after', prepareNotAfter],
  ['scope_in', prepareScopeIn],
]);

/** The names of the built-in conditions. */
export const BUILT_IN_CONDITIONS: ReadonlySet<string> = new Set(PREPARERS.keys());

/**
 * Binds the built-in condition `name` to `paramsJson` (JSON text of an object, or ''). Parameters
 * that are missing or ill-typed, and unknown names, give a condition that is always undecided.
 */
export function prepareCondition(name: string, paramsJson: string): PreparedCondition {
  const prepare = PREPARERS.get(name);
  if (prepare === undefined) return undecided;
  const params = paramsJson === '' ? EMPTY : parseContext(paramsJson);
  return params === undefined ? undecided : prepare(params);
}

/** The context object of a request from its JSON text ('' is none); undefined if it is no object. */
export function parseContext(json: string): ConditionContext | undefined {
  if (json === '') return EMPTY;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as ConditionContext;
  } catch (error) {
    // The edge validates context and parameters; text that is no JSON decides nothing.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function prepareConsentGranted(params: Parameters): PreparedCondition {
  const hasPurpose = Object.hasOwn(params, 'purpose');
  const purpose = params['purpose'];
  if (hasPurpose && typeof purpose !== 'string') return undecided;
  return (context) => {
    const consent = own(context, 'consent');
    if (typeof consent === 'boolean') return consent ? CONDITION_TRUE : CONDITION_FALSE;
    // A list speaks of purposes: without one to look for, it decides nothing.
    if (!hasPurpose || !isStringList(consent)) return CONDITION_UNDECIDED;
    return consent.includes(purpose as string) ? CONDITION_TRUE : CONDITION_FALSE;
  };
}

function prepareAgeAtLeast(params: Parameters): PreparedCondition {
  const minAge = own(params, 'min_age');
  if (typeof minAge !== 'number' || !Number.isFinite(minAge)) return undecided;
  return (context) => {
    const age = own(context, 'age');
    if (typeof age !== 'number' || !Number.isFinite(age)) return CONDITION_UNDECIDED;
    return age >= minAge ? CONDITION_TRUE : CONDITION_FALSE;
  };
}

function prepareIpInCidrs(params: Parameters): PreparedCondition {
  const cidrs = own(params, 'cidrs');
  if (!isStringList(cidrs)) return undecided;
  const networks: Network[] = [];
  for (const cidr of cidrs) {
    const network = parseCidr(cidr);
    if (network === undefined) return undecided;
    networks.push(network);
  }
  return (context) => {
    const ip = own(context, 'ip');
    const address = typeof ip === 'string' ? parseAddress(ip) : undefined;
    if (address === undefined) return CONDITION_UNDECIDED;
    for (const [network, prefixBits] of networks) {
      if (network.kind() === address.kind() && address.match(network, prefixBits)) {
        return CONDITION_TRUE;
      }
    }
    return CONDITION_FALSE;
  };
}

/** Four decimal parts without leading zeros, or IPv6 without a zone; mapped IPv6 becomes IPv4. */
function parseAddress(text: string): Address | undefined {
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

/** A CIDR; bits beyond the prefix are ignored. A mapped network of /96 and longer becomes IPv4. */
function parseCidr(text: string): Network | undefined {
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

function prepareNotAfter(params: Parameters): PreparedCondition {
  const limit = instantOf(own(params, 'not_after'));
  if (limit === undefined) return undecided;
  return (context) => {
    const now = instantOf(own(context, 'now'));
    if (now === undefined) return CONDITION_UNDECIDED;
    return compareInstants(now, limit) <= 0 ? CONDITION_TRUE : CONDITION_FALSE;
  };
}

function instantOf(value: unknown): Instant | undefined {
  return typeof value === 'string' ? parseInstant(value) : undefined;
}

function prepareScopeIn(params: Parameters): PreparedCondition {
  const scopes = own(params, 'scopes');
  if (!isStringList(scopes)) return undecided;
  const allowed = new Set(scopes);
  return (context) => {
    const text = own(context, 'scope');
    const list = own(context, 'scopes');
    if (text === undefined && list === undefined) return CONDITION_UNDECIDED;
    if (text !== undefined && typeof text !== 'string') return CONDITION_UNDECIDED;
    if (list !== undefined && !isStringList(list)) return CONDITION_UNDECIDED;
    const given = [...(text ?? '').split(' '), ...(list ?? [])];
    return given.some((scope) => scope !== '' && allowed.has(scope))
      ? CONDITION_TRUE
      : CONDITION_FALSE;
  };
}

function own(object: { readonly [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
